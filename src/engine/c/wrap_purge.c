/*
** purge.c as it is, but a loop among purged deltas stops Fossil: the function that meets it
** would give an error that its caller does not look at, and no content.
*/
#define bag_find ocx_purge_bag_find
#include "purge_.c"
#undef bag_find

int bag_find(Bag*, int);

int ocx_purge_bag_find(Bag *p, int piid){
  if( bag_find(p, piid) ) fossil_fatal("delta loop among purged artifacts");
  return 0;
}
