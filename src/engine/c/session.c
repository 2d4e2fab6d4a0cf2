/*
** Sessions: made, measured, freed with all that they hold.
*/
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "session.h"

char *ocx_pristine;

static void names_free(Handles *h){
  for(size_t i=0; i<h->count; i++) free(h->items[i]);
  free(h->items);
}

size_t ocx_session_memory(const OcxSession *s){ return s->memory; }

size_t ocx_start(void){
  size_t size = ocx_image_size();
  if( size<8*1024 || size>4*1024*1024 ) return 0;
  if( ocx_pristine==0 ){
    ocx_pristine = malloc(size);
    if( ocx_pristine==0 || !ocx_streams_open() ) return 0;
    ocx_image_save(ocx_pristine);
  }
  return size;
}

OcxSession *ocx_session_new(size_t max_memory){
  OcxSession *s = calloc(1, sizeof(*s));
  if( s==0 ) return 0;
  s->image = malloc(ocx_image_size());
  if( s->image==0 ){ free(s); return 0; }
  memcpy(s->image, ocx_pristine, ocx_image_size());
  s->blocks.next = s->blocks.prev = &s->blocks;
  s->max_memory = max_memory;
  return s;
}

void ocx_session_free(OcxSession *s){
  size_t i;
  if( s==0 ) return;
  if( ocx_is_lent(s) ) ocx_lend_end();
  /* SQLite calls back into Fossil's functions and data while it closes. */
  ocx_image_load(s->image);
  ocx_current = s;
  s->is_ending = 1;
  for(i=0; i<s->databases.count; i++) ocx_database_end(s->databases.items[i]);
  for(i=0; i<s->files.count; i++) fclose(s->files.items[i]);
  for(i=0; i<s->directories.count; i++) closedir(s->directories.items[i]);
  for(i=0; i<s->descriptors.count; i++) close(ocx_item_fd(s->descriptors.items[i]));
  while( s->blocks.next!=&s->blocks ){
    Block *b = s->blocks.next;
    s->blocks.next = b->next;
    free(b);
  }
  ocx_current = 0;
  ocx_image_load(ocx_pristine);
  names_free(&s->functions);
  names_free(&s->modules);
  free(s->statements.items);
  free(s->databases.items);
  free(s->files.items);
  free(s->directories.items);
  free(s->descriptors.items);
  free(s->image);
  free(s);
}
