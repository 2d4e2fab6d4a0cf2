/*
** Storing: a check-in in one call, and a write transaction in several.
*/
#include "config.h"
#include "bound.h"
#include "mod_store.h"
#include "operations.h"

int ocx_content_put(Blob*, const char*, int);
void ocx_link_waiting(int);
void ocx_parse_ahead(int, const char*, int);
int ocx_is_parsed(int);

/*
** May a check-in on zBranch follow check-in pid?  Returns OCX_STORED or a refusal.
*/
static int ocx_may_follow(int pid, const char *zBranch){
  char *zParentBranch;
  if( !db_exists("SELECT 1 FROM event WHERE objid=%d AND type='ci'", pid) ) return OCX_NO_PARENT;
  zParentBranch = branch_of_rid(pid);
  if( fossil_strcmp(zParentBranch, zBranch)==0 ){
    if( leaf_is_closed(pid) ) return OCX_BRANCH_CLOSED;
    if( !is_a_leaf(pid) ) return OCX_WOULD_FORK;
  }else if( db_exists(
    "SELECT 1 FROM leaf JOIN tagxref USING(rid)"
    " WHERE tagid=%d AND tagtype>0 AND value=%Q AND NOT %z",
    TAG_BRANCH, zBranch, leaf_is_closed_sql("leaf.rid")) ){
    return OCX_WOULD_FORK;
  }
  return OCX_STORED;
}

/*
** Store one content unless it is there.  What it replaces may become a delta from it.
*/
static void ocx_put_content(const OcxContent *p){
  Blob content;
  int rid, old;
  /* blob_init() replaces a size of zero by strlen(). */
  blob_init(&content, p->content.size ? p->content.data : "", (int)p->content.size);
  rid = ocx_content_put(&content, p->hash, 0);
  db_add_unsent(rid);
  old = p->previous ? fast_uuid_to_rid(p->previous) : 0;
  if( old>0 && old!=rid ) content_deltify(old, &rid, 1, 0);
}

/*
** Compress at the least cost.  A manifest is stored whole only until the next check-in
** makes it a delta, and deflating one of many files well costs more than all the rest.
*/
static void ocx_compress_quickly(const OcxText *p, Blob *pOut){
  uLongf n = compressBound((uLong)p->size);
  unsigned char *z;
  blob_zero(pOut);
  blob_resize(pOut, (unsigned)n + 4);
  z = (unsigned char*)blob_buffer(pOut);
  z[0] = p->size>>24 & 0xff;
  z[1] = p->size>>16 & 0xff;
  z[2] = p->size>>8 & 0xff;
  z[3] = p->size & 0xff;
  if( ocx_compress2(&z[4], &n, (const Bytef*)p->data, (uLong)p->size, Z_BEST_SPEED)!=Z_OK ){
    fossil_fatal("cannot compress the manifest");
  }
  blob_resize(pOut, (unsigned)n + 4);
}

/*
** Store a control artifact and link it in; previous, if not 0, may become a delta from
** it.  Returns its rid, or 0 when Fossil's parser does not take it.
*/
static int ocx_put(const OcxText *pText, const char *zHash, int previous){
  Blob artifact;
  int rid;
  ocx_compress_quickly(pText, &artifact);
  rid = ocx_content_put(&artifact, zHash, (int)pText->size);
  blob_reset(&artifact);
  db_add_unsent(rid);
  blob_init(&artifact, 0, 0);
  blob_append(&artifact, pText->data, (int)pText->size);
  if( !manifest_crosslink(rid, &artifact, MC_NONE) ) return 0;
  if( previous>0 && previous!=rid ) content_deltify(previous, &rid, 1, 0);
  return rid;
}

/*
** Store the manifest of a check-in and link it in, as ocx_put() does.  Linking makes
** the parent's a delta from it, where both or neither have a baseline.
*/
static int ocx_put_manifest(const OcxCheckIn *p){
  int rid = ocx_put(&p->manifest, p->manifest_hash, 0);
  return rid && db_exists("SELECT 1 FROM event WHERE objid=%d AND type='ci'", rid) ? rid : 0;
}

static int ocx_check_in_within(const OcxCheckIn *p){
  int pid = fast_uuid_to_rid(p->parent);
  int rid, rc;
  size_t i;
  if( !ocx_act_as(p->user) ) return OCX_NO_USER;
  rc = ocx_may_follow(pid, p->branch);
  if( rc!=OCX_STORED && !(rc==OCX_WOULD_FORK && p->allow_fork) ) return rc;
  g.markPrivate = p->is_private;
  g.zNonce = p->note ? fossil_strdup(p->note) : 0;
  for(i=0; i<p->content_count; i++) ocx_put_content(&p->contents[i]);
  rid = ocx_put_manifest(p);
  g.markPrivate = 0;
  if( rid==0 ) return OCX_NOT_ACCEPTED;
  if( db_exists("SELECT 1 FROM event c, event p WHERE c.objid=%d AND p.objid=%d"
                " AND coalesce(c.omtime,c.mtime)<=coalesce(p.omtime,p.mtime)", rid, pid) ){
    return OCX_PARENT_YOUNGER;
  }
  return OCX_STORED;
}

/*
** Keep the planner's statistics of every table (0x10000) up to date while the repository
** grows.  Without that "blob" counts as one row, as in a new repository, and Fossil scans
** all of it for each file of a checkout.
*/
static void ocx_stored(void){
  static int nStored = 0;
  if( (++nStored & 0xff)==1 ){
    sqlite3_exec(g.db, "PRAGMA analysis_limit=1000; PRAGMA optimize=0x10002", 0, 0, 0);
  }
}

int ocx_mod_check_in_begin(const void *unused){
  db_begin_write();
  return 0;
}

int ocx_mod_check_in(const void *pArg){
  int rc = ocx_check_in_within((const OcxCheckIn*)pArg);
  if( rc ) verify_cancel();
  /* Here, because statements that the end of a transaction prepares are not kept. */
  else leaf_do_pending_checks();
  db_end_transaction(rc!=OCX_STORED);
  if( rc==OCX_STORED ) ocx_stored();
  return rc;
}

/*
** A write transaction in several calls, between which Rust uses the same handle.
*/
int ocx_mod_transaction_begin(const void *pArg){
  const OcxModBegin *p = pArg;
  if( !ocx_act_as(p->user) ) return OCX_NO_USER;
  db_begin_write();
  *p->db = g.db;
  return 0;
}

int ocx_mod_transaction_receipt(const void *pArg){
  content_rcvid_init(0);
  *(int*)pArg = g.rcvid;
  return 0;
}

int ocx_mod_transaction_put(const void *pArg){
  const OcxModPut *p = pArg;
  const char *zPrevious = p->artifact->previous;
  int previous = zPrevious ? fast_uuid_to_rid(zPrevious) : 0;
  *p->rid = ocx_put(&p->artifact->text, p->artifact->hash, previous);
  return *p->rid ? 0 : OCX_NOT_ACCEPTED;
}

/*
** Link stored artifacts in, in several calls between a first and a last one.  Fossil's code did not store them and may
** think that they are missing.
*/
int ocx_mod_transaction_link_begin(const void *unused){
  content_clear_cache(0);
  manifest_crosslink_begin();
  return 0;
}

static void ocx_copy_text(const OcxText *p, Blob *pOut){
  /* The parser writes into the text, and the cache of manifests keeps it. */
  blob_init(pOut, 0, 0);
  blob_append(pOut, p->data, (int)p->size);
}

/* A check-in's parent comes next, or has come: it is at hand, parsed. */
static void ocx_link_one(const OcxStored *p, const OcxStored *pNext){
  Blob content;
  if( pNext && pNext->text.size ){
    ocx_copy_text(&pNext->text, &content);
    content_cache_insert(pNext->rid, &content);
    ocx_parse_ahead(pNext->rid, pNext->text.data, (int)pNext->text.size);
  }
  if( ocx_is_parsed(p->rid) ){
    blob_init(&content, 0, 0);  /* nobody reads it */
  }else if( p->text.size ){
    ocx_copy_text(&p->text, &content);
  }else if( !content_get(p->rid, &content) ){
    return;
  }
  manifest_crosslink(p->rid, &content, MC_NO_ERRORS);
}

int ocx_mod_transaction_link(const void *pArg){
  const OcxModLink *p = pArg;
  size_t i;
  if( p->count && p->stored[0].text.size ){
    ocx_parse_ahead(p->stored[0].rid, p->stored[0].text.data, (int)p->stored[0].text.size);
  }
  for(i=0; i<p->count; i++) ocx_link_one(&p->stored[i], i+1<p->count ? &p->stored[i+1] : 0);
  return 0;
}

int ocx_mod_transaction_link_end(const void *unused){
  manifest_crosslink_end(MC_NONE);
  return 0;
}

int ocx_mod_transaction_filled(const void *pArg){
  const OcxModFilled *p = pArg;
  size_t i;
  content_clear_cache(0);
  for(i=0; i<p->count; i++) ocx_link_waiting(p->rids[i]);
  return 0;
}

int ocx_mod_transaction_end(const void *unused){
  db_end_transaction(0);
  ocx_stored();
  return 0;
}
