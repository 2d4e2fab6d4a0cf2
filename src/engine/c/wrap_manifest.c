/*
** manifest.c as it is, but for three texts on which its parser would leave its memory, and
** which any server may send:
**   -  a K, R or Z card without argument after a card whose argument had the size wanted:
**      the missing one is read;
**   -  a W card of 4294967295 bytes: that plus one is zero for the check of the size.
** A tag `parent` counts only if its value is a list of hashes of check-ins that are linked in,
** none of them a descendant: the function that obeys it measures a value that may be absent,
** writes behind its list if a word is no hash, and makes circles, in which nothing is a leaf.
** The checksum of a text that Rust has verified is not made again.  Hex digits are looked at
** many at a time, as a check-in has thousands of hashes.  And its SQL is kept.
*/
#include "bound.h"
#define md5sum_step_text ocx_step_unless_verified
#define md5sum_finish ocx_finish_unless_verified
#define validate16 ocx_validate16
#define hname_validate ocx_hname_validate
#define blob_materialize ocx_blob_materialize
#define manifest_reparent_checkin fossil_reparent_checkin
#define manifest_crosslink_end fossil_crosslink_end
#include "manifest_.c"
#undef md5sum_step_text
#undef md5sum_finish
#undef validate16
#undef hname_validate
#undef blob_materialize
#undef manifest_reparent_checkin
#undef manifest_crosslink_end

int validate16(const char*, int);
int hname_validate(const char*, int);
void md5sum_step_text(const char*, int);
char *md5sum_finish(Blob*);
char *blob_materialize(Blob*);
void blob_resize(Blob*, unsigned int);

/* The text at this place was verified; and the checksum on its Z card, while that is compared. */
static const char *zVerified, *zChecksum;

void ocx_step_unless_verified(const char *z, int n){
  zChecksum = z==zVerified ? &z[n+2] : 0;
  if( zChecksum==0 ) md5sum_step_text(z, n);
}

char *ocx_finish_unless_verified(Blob *pOut){
  const char *z = zChecksum;
  zChecksum = 0;
  return z && pOut==0 ? (char*)z : md5sum_finish(pOut);
}

typedef unsigned char Digits __attribute__((vector_size(16)));

/* Which of 16 bytes are hex digits? */
static Digits ocx_hex_digits(const char *z){
  Digits c;
  memcpy(&c, z, sizeof(c));
  return (Digits)((c-'0'<10) | ((c|0x20)-'a'<6));
}

/* As hname_validate(), but for hashes in one step. */
int ocx_hname_validate(const char *z, int n){
  Digits hex;
  unsigned long long a[2];
  if( n!=40 && n!=64 ) return hname_validate(z, n);
  hex = ocx_hex_digits(z) & ocx_hex_digits(z+16) & ocx_hex_digits(z+n-16);
  if( n==64 ) hex &= ocx_hex_digits(z+32);
  memcpy(a, &hex, sizeof(a));
  if( (a[0] & a[1])!=~0ULL ) return 0;
  return n==40 ? 1 : 2;
}

/* Is the artifact at hand, parsed? */
int ocx_is_parsed(int rid){
  int i;
  for(i=0; i<MX_MANIFEST_CACHE; i++){
    if( manifestCache.apManifest[i] && manifestCache.apManifest[i]->rid==rid ) return 1;
  }
  return 0;
}

/* Parse a text that was verified, and keep it at hand for whoever asks for it next. */
void ocx_parse_ahead(int rid, const char *zText, int nText){
  Blob text;
  Manifest *p;
  blob_init(&text, 0, 0);
  blob_append(&text, zText, nText);
  zVerified = blob_buffer(&text);
  p = manifest_parse(&text, rid, 0);
  zVerified = 0;
  if( p ) manifest_cache_insert(p);
}

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

/* The hashes of such a list as one of SQL, in memory from fossil_malloc(). */
static char *ocx_quoted_list(const char *z){
  Blob list;
  blob_init(&list, "'", 1);
  for(; *z; z++){
    if( *z==' ' ) blob_append(&list, "','", 3);
    else blob_append_char(&list, *z);
  }
  blob_append_char(&list, '\'');
  return blob_str(&list);
}

/* How many hashes the list has. */
static int ocx_list_length(const char *z){
  int n = 1;
  for(; *z; z++) n += *z==' ';
  return n;
}

/*
** May the tag give these parents to the check-in?  They and all that lies behind them must be linked in, so that
** nothing that comes later closes a circle, and the check-in must not be among it.  One without a P card gets one
** parent at most: with more, add_mlink() would read the first hash of the card that is not there.
*/
static int ocx_may_reparent(int rid, const char *zValue, const char *zList){
  Manifest *p;
  int nParent, nWanted = ocx_list_length(zValue);
  if( nWanted!=db_int(0, "SELECT count(*) FROM blob WHERE uuid IN (%s)", zList/*safe-for-%s*/) ) return 0;
  if( db_exists(
    "WITH RECURSIVE behind(rid) AS ("
    "  SELECT rid FROM blob WHERE uuid IN (%s)"
    "  UNION SELECT plink.pid FROM behind CROSS JOIN plink ON plink.cid=behind.rid)"
    "SELECT 1 FROM behind WHERE rid=%d"
    "  OR NOT EXISTS(SELECT 1 FROM event WHERE objid=behind.rid AND type='ci')",
    zList/*safe-for-%s*/, rid) ) return 0;
  p = manifest_get(rid, CFTYPE_MANIFEST, 0);
  if( p==0 ) return 0;
  nParent = p->nParent;
  manifest_destroy(p);
  return nParent>0 || nWanted==1;
}

/* Does the check-in have these parents already, the first as its primary one?  Then there is nothing to do. */
static int ocx_has_parents(int rid, const char *zValue, const char *zList){
  int nWanted = ocx_list_length(zValue);
  return db_exists(
    "SELECT 1 FROM plink JOIN blob ON blob.rid=pid"
    " WHERE cid=%d AND isprim AND uuid=substr(%Q,1,length(uuid))"
    "   AND (SELECT count(*) FROM plink WHERE cid=%d)=%d"
    "   AND (SELECT count(*) FROM plink JOIN blob ON blob.rid=pid WHERE cid=%d AND uuid IN (%s))=%d",
    rid, zValue, rid, nWanted, rid, zList/*safe-for-%s*/, nWanted);
}

/* Obey a tag `parent` if it may count.  True if that took a look at all that lies behind the check-in. */
static int ocx_reparent(int rid, const char *zValue){
  char *zList = ocx_quoted_list(zValue);
  int isOther = !ocx_has_parents(rid, zValue, zList);
  if( isOther && ocx_may_reparent(rid, zValue, zList) ) fossil_reparent_checkin(rid, zValue);
  fossil_free(zList);
  return isOther;
}

void manifest_reparent_checkin(int rid, const char *zValue){
  if( ocx_is_hash_list(zValue) ) ocx_reparent(rid, zValue);
}

/* At most this many tags `parent` that do not count yet are looked at again after artifacts were linked in. */
#define PARENTS_MAX 200

/* The type of such a tag while Fossil must not see it. */
#define TAG_HIDDEN 3

/*
** Fossil now obeys each tag `parent` of the repository.  Those that may count are obeyed here, and hidden from it
** meanwhile.  One that names no parents is not kept, whoever stored it.
*/
int manifest_crosslink_end(int flags){
  Stmt q;
  int rc, nLeft = PARENTS_MAX;
  db_multi_exec("UPDATE tagxref SET tagtype=%d WHERE tagid=%d AND tagtype=1", TAG_HIDDEN, TAG_PARENT);
  db_prepare(&q, "SELECT rid, value FROM tagxref WHERE tagid=%d AND tagtype=%d", TAG_PARENT, TAG_HIDDEN);
  while( db_step(&q)==SQLITE_ROW ){
    int rid = db_column_int(&q, 0);
    const char *zValue = db_column_text(&q, 1);
    if( !ocx_is_hash_list(zValue) ){
      db_multi_exec("DELETE FROM tagxref WHERE tagid=%d AND rid=%d", TAG_PARENT, rid);
    }else if( nLeft>0 ){
      nLeft -= ocx_reparent(rid, zValue);
    }
  }
  db_finalize(&q);
  rc = fossil_crosslink_end(flags);
  db_multi_exec("UPDATE tagxref SET tagtype=1 WHERE tagid=%d AND tagtype=%d", TAG_PARENT, TAG_HIDDEN);
  return rc;
}
