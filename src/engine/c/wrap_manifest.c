/*
** manifest.c as it is, but for three texts on which its parser would leave its memory, and
** which any server may send:
**   -  a K, R or Z card without argument after a card whose argument had the size wanted:
**      the missing one is read;
**   -  a W card of 4294967295 bytes: that plus one is zero for the check of the size.
** A tag `parent` counts only if its value is a list of hashes: the function that obeys it
** measures a value that may be absent, and writes behind its list if a word is no hash.
** And its SQL is kept.
*/
#include "bound.h"
#define validate16 ocx_validate16
#define blob_materialize ocx_blob_materialize
#define manifest_reparent_checkin fossil_reparent_checkin
#define manifest_crosslink_end fossil_crosslink_end
#include "manifest_.c"
#undef validate16
#undef blob_materialize
#undef manifest_reparent_checkin
#undef manifest_crosslink_end

int validate16(const char*, int);
char *blob_materialize(Blob*);
void blob_resize(Blob*, unsigned int);

int ocx_validate16(const char *z, int n){
  return z!=0 && validate16(z, n);
}

/* Is the size on this W card, as the parser reads it, one that wraps? */
static int ocx_size_wraps(const char *z, const char *zEnd){
  unsigned size = 0, before;
  for(; z<zEnd && *z>='0' && *z<='9'; z++){
    before = size;
    size = size*10 + (*z - '0');
    if( size<before ) return 0;  /* the parser sees that itself */
  }
  return size==0xffffffffu;
}

/* The first W card is the one that counts; what follows it may be the page's text. */
static int ocx_wild_w_card(const char *z, int n){
  const char *zEnd = z+n;
  int bSigned = n>10 && memcmp(z, "-----BEGIN", 10)==0;
  while( z && z<zEnd ){
    if( zEnd-z>2 && z[0]=='W' && z[1]==' ' ){
      if( ocx_size_wraps(z+2, zEnd) ) return 1;
      if( !bSigned ) return 0;
    }
    z = memchr(z, '\n', zEnd-z);
    if( z ) z++;
  }
  return 0;
}

/* The parser's first act: a text that it must not see becomes an empty one. */
char *ocx_blob_materialize(Blob *p){
  char *z = blob_materialize(p);
  if( ocx_wild_w_card(z, blob_size(p)) ){
    z[0] = 0;
    blob_resize(p, 0);
    z = blob_buffer(p);
  }
  return z;
}

/* Is the value one or more hashes, divided by one space each? */
static int ocx_is_hash_list(const char *z){
  int n;
  if( z==0 ) return 0;
  for(;; z+=n+1){
    for(n=0; z[n]>' '; n++){}
    if( !hname_validate(z, n) ) return 0;
    if( z[n]==0 ) return 1;
    if( z[n]!=' ' ) return 0;
  }
}

void manifest_reparent_checkin(int rid, const char *zValue){
  if( ocx_is_hash_list(zValue) ) fossil_reparent_checkin(rid, zValue);
}

/* Fossil now obeys each tag `parent` of the repository.  What names no parents goes before, whoever stored it. */
int manifest_crosslink_end(int flags){
  Stmt q;
  db_prepare(&q, "SELECT rid, value FROM tagxref WHERE tagid=%d AND tagtype=1", TAG_PARENT);
  while( db_step(&q)==SQLITE_ROW ){
    if( ocx_is_hash_list(db_column_text(&q, 1)) ) continue;
    db_multi_exec("DELETE FROM tagxref WHERE tagid=%d AND rid=%d", TAG_PARENT, db_column_int(&q, 0));
  }
  db_finalize(&q);
  return fossil_crosslink_end(flags);
}
