/*
** content.c as it is, but what waited for an artifact is linked in by ocx_link_waiting(), where Fossil's own
** function calls itself for each delta of a delta; and an artifact that waited for its basis is compared with its
** hash before it is linked in.  Fossil keeps a pulled delta whose basis is yet to come without a look into it.  If the
** artifact is not what it is called, it becomes unknown again.  It is then asked for anew, and refused
** if it is wrong again.
*/
#define manifest_crosslink ocx_crosslink_if_whole
#include "content_.c"
#undef manifest_crosslink

int manifest_crosslink(int, Blob*, int);
void manifest_crosslink_begin(void);
int manifest_crosslink_end(int);
int hname_verify_hash(Blob*, const char*, int);

static void ocx_forget(int rid){
  db_multi_exec(
    "UPDATE blob SET size=-1, content=NULL WHERE rid=%d;"
    "DELETE FROM delta WHERE rid=%d;"
    "INSERT OR IGNORE INTO phantom VALUES(%d);",
    rid, rid, rid
  );
  content_clear_cache(0);
}

int ocx_crosslink_if_whole(int rid, Blob *pContent, int flags){
  char *zHash;
  int isWhole;
  /* Without content, it waits for more than this basis. */
  if( ocx_plain || blob_size(pContent)==0 ) return manifest_crosslink(rid, pContent, flags);
  zHash = db_text("", "SELECT uuid FROM blob WHERE rid=%d", rid);
  isWhole = hname_verify_hash(pContent, zHash, (int)strlen(zHash));
  fossil_free(zHash);
  if( isWhole ) return manifest_crosslink(rid, pContent, flags);
  ocx_forget(rid);
  blob_reset(pContent);
  return 0;
}

typedef struct OcxWaiting { int *a; int n, nAlloc; } OcxWaiting;

/* Add what a query gives to those that wait. */
static void ocx_add_waiting(OcxWaiting *p, const char *zSql, int rid){
  Stmt q;
  db_prepare(&q, zSql/*works-like:"%d"*/, rid);
  while( db_step(&q)==SQLITE_ROW ){
    if( p->n>=p->nAlloc ){
      p->nAlloc = p->nAlloc*2 + 10;
      p->a = fossil_realloc(p->a, p->nAlloc*sizeof(p->a[0]));
    }
    p->a[p->n++] = db_column_int(&q, 0);
  }
  db_finalize(&q);
}

/* Does anything wait for this artifact? */
static int ocx_is_awaited(int rid){
  static Stmt q;
  int rc;
  db_static_prepare(&q, "SELECT 1 FROM orphan WHERE baseline=:rid UNION ALL SELECT 1 FROM delta WHERE srcid=:rid");
  db_bind_int(&q, ":rid", rid);
  rc = db_step(&q)==SQLITE_ROW;
  db_reset(&q);
  return rc;
}

/*
** An artifact that was known by name only has its content now.  Link in what has waited for it: delta manifests whose
** baseline it is, and what is a delta from it, from those and so on.  What is linked in already is let be: some kinds
** can be linked in only once.
*/
void ocx_link_waiting(int rid){
  OcxWaiting waiting = {0, 0, 0};
  int isFirst = 1;
  if( !ocx_is_awaited(rid) ) return;
  manifest_crosslink_begin();
  ocx_add_waiting(&waiting, "SELECT %d", rid);
  while( waiting.n>0 ){
    rid = waiting.a[--waiting.n];
    if( !isFirst && !db_exists("SELECT 1 FROM event WHERE objid=%d", rid) ){
      Blob content;
      content_get(rid, &content);
      ocx_crosslink_if_whole(rid, &content, MC_NONE);
    }
    isFirst = 0;
    ocx_add_waiting(&waiting, "SELECT rid FROM orphan WHERE baseline=%d", rid);
    db_multi_exec("DELETE FROM orphan WHERE baseline=%d", rid);
    ocx_add_waiting(&waiting, "SELECT rid FROM delta WHERE srcid=%d", rid);
  }
  manifest_crosslink_end(MC_NONE);
  free(waiting.a);
}

/* Store as content_put_ex() does. */
int ocx_content_put(Blob *pBlob, const char *zHash, int nBlob){
  int rid;
  content_enable_dephantomize(0);
  rid = content_put_ex(pBlob, zHash, 0, nBlob, 0);
  content_enable_dephantomize(1);
  ocx_link_waiting(rid);
  return rid;
}
