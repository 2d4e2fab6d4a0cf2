/*
** content.c as it is, but an artifact that waited for its basis is compared with its hash before it is
** linked in.  Fossil keeps a pulled delta whose basis is yet to come without a look into it.  If the
** artifact is not what it is called, it becomes unknown again.  It is then asked for anew, and refused
** if it is wrong again.
*/
#define manifest_crosslink ocx_crosslink_if_whole
#include "content_.c"
#undef manifest_crosslink

int manifest_crosslink(int, Blob*, int);
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
