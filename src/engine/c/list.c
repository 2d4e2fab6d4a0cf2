/*
** The session whose call is running, and the lists of what a session holds.
*/
#include <stdlib.h>
#include <string.h>
#include "session.h"

OcxSession *ocx_current;

void ocx_handle_add(Handles *h, void *item){
  if( h->count==h->room ){
    size_t room = h->room ? h->room*2 : 16;
    void **items = realloc(h->items, room*sizeof(*items));
    if( items==0 ) return;     /* untracked: leaks at worst */
    h->items = items;
    h->room = room;
  }
  h->items[h->count++] = item;
}
int ocx_handle_drop(Handles *h, void *item){
  for(size_t i=h->count; i>0; i--){
    if( h->items[i-1]==item ){
      memmove(&h->items[i-1], &h->items[i], (h->count-i)*sizeof(h->items[0]));
      h->count--;
      return 1;
    }
  }
  return 0;
}
