/*
** Memory: libc's allocator, each block on the session's ring.
*/
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "session.h"

#define BLOCK_MARK ((size_t)0x6f63782d626c6f63ull)

static int room_for(size_t n){
  OcxSession *s = ocx_current;
  if( s->memory + n <= s->max_memory ) return 1;
  if( !s->out_of_memory ){
    /* Fossil needs some memory to say that there is none. */
    s->out_of_memory = 1;
    s->max_memory += (size_t)1<<20;
  }
  return 0;
}
static void *block_link(Block *b, size_t n){
  Block *head = &ocx_current->blocks;
  b->size = n;
  b->mark = BLOCK_MARK;
  b->next = head->next;
  b->prev = head;
  head->next->prev = b;
  head->next = b;
  ocx_current->memory += n;
  return b+1;
}
static void block_unlink(Block *b){
  b->next->prev = b->prev;
  b->prev->next = b->next;
  ocx_current->memory -= b->size;
}
/* NULL for a pointer that libc allocated, such as realpath's. */
__attribute__((no_sanitize_address))
static Block *block_of(void *p){
  Block *b = (Block*)p - 1;
  return b->mark==BLOCK_MARK ? b : 0;
}

void *ocx_malloc(size_t n){
  Block *b;
  if( ocx_plain || ocx_current==0 ) return malloc(n);
  ocx_heed_interrupt();
  if( n>(size_t)PTRDIFF_MAX - sizeof(Block) || !room_for(n) ) return 0;
  b = malloc(sizeof(Block) + n);
  return b ? block_link(b, n) : 0;
}
void *ocx_calloc(size_t k, size_t n){
  void *p;
  if( ocx_plain || ocx_current==0 ) return calloc(k, n);
  if( n && k>(size_t)PTRDIFF_MAX/n ) return 0;
  p = ocx_malloc(k*n);
  return p ? memset(p, 0, k*n) : 0;
}
void *ocx_realloc(void *p, size_t n){
  Block *b, *moved;
  if( ocx_plain || ocx_current==0 ) return realloc(p, n);
  if( p==0 ) return ocx_malloc(n);
  b = block_of(p);
  if( b==0 ) return realloc(p, n);
  if( n>(size_t)PTRDIFF_MAX - sizeof(Block) ) return 0;
  if( n>b->size && !room_for(n - b->size) ) return 0;
  block_unlink(b);
  moved = realloc(b, sizeof(Block) + n);
  if( moved==0 ){
    block_link(b, b->size);
    return 0;
  }
  return block_link(moved, n);
}
void ocx_free(void *p){
  Block *b;
  if( ocx_plain || ocx_current==0 ){ free(p); return; }
  if( p==0 ) return;
  b = block_of(p);
  if( b==0 ){ free(p); return; }
  block_unlink(b);
  b->mark = 0;
  free(b);
}
char *ocx_strndup(const char *z, size_t n){
  size_t k = strnlen(z, n);
  char *p = ocx_malloc(k+1);
  if( p==0 ) return 0;
  memcpy(p, z, k);
  p[k] = 0;
  return p;
}
char *ocx_strdup(const char *z){ return ocx_strndup(z, strlen(z)); }
