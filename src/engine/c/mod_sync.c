/*
** Other repositories: sync, the remembered server, clones.
*/
#include "config.h"
#include "bound.h"
#include "mod_sync.h"
#include "operations.h"

/*
** Push and pull.  A temporary table hides the real "unsent" while the sync runs: emptying
** the real one first would hold the write lock through every wait on the network, and
** would forget what the server then does not take.  The caller empties it.
*/
int ocx_mod_sync(const void *pArg){
  const OcxSyncCall *p = pArg;
  unsigned flags = SYNC_QUIET;
  int nErr;
  if( !ocx_act_as(p->local_user) ) fossil_fatal("no such user: %s", p->local_user);
  if( p->push ) flags |= SYNC_PUSH;
  if( p->pull ) flags |= SYNC_PULL;
  if( p->is_private ) flags |= SYNC_PRIVATE;
  if( p->unversioned ) flags |= SYNC_UNVERSIONED;
  url_parse(p->url, 0);
  db_multi_exec(
    "CREATE TEMP TABLE unsent(rid INTEGER PRIMARY KEY);"
    "INSERT INTO temp.unsent SELECT rid FROM repository.unsent;");
  nErr = client_sync(flags, 0, 0, 0, 0);
  db_multi_exec("DROP TABLE temp.unsent");
  return nErr;
}

int ocx_mod_set_remote(const void *pArg){
  const OcxModRemote *p = pArg;
  db_begin_write();
  if( p->url ){
    db_set("last-sync-url", p->url, 0);
  }else{
    db_unset("last-sync-url", 0);
  }
  if( p->password ){
    db_set("last-sync-pw", obscure(p->password), 0);
  }else{
    db_unset("last-sync-pw", 0);
  }
  db_end_transaction(0);
  return 0;
}

int ocx_mod_remote(const void *unused){
  fossil_print("%s\n%s", db_get("last-sync-url", ""), unobscure(db_get("last-sync-pw", "")));
  return 0;
}

int ocx_mod_clone(const void *pArg){
  const OcxModClone *p = pArg;
  unsigned flags = SYNC_CLONE|SYNC_QUIET;
  int nErr;
  ocx_begin(p->sync->local_user);
  db_create_repository(p->path);
  db_open_repository(p->path);
  ocx_config_in_memory();
  db_begin_transaction();
  db_initial_setup(0, 0, p->sync->local_user);
  user_select();
  db_unset("hash-policy", 0);
  db_unprotect(PROTECT_CONFIG);
  db_multi_exec("DELETE FROM config WHERE name='project-code'");
  db_protect_pop();
  url_parse(p->sync->url, 0);
  g.xlinkClusterOnly = 1;
  if( p->sync->is_private ) flags |= SYNC_PRIVATE;
  if( p->sync->unversioned ) flags |= SYNC_UNVERSIONED;
  nErr = client_sync(flags, CONFIGSET_ALL, 0, 0, 0);
  g.xlinkClusterOnly = 0;
  verify_cancel();
  db_end_transaction(nErr!=0);
  if( nErr ) fossil_fatal("the server returned an error, so nothing was cloned");
  if( db_get("project-code", 0)==0 ) fossil_fatal("the server sent no project, so nothing was cloned");
  db_close(1);
  return 0;
}

/*
** Make the derived tables of a fresh clone, once all its artifacts are here and checked.
*/
int ocx_mod_finish_clone(const void *pArg){
  const OcxModAdopt *p = pArg;
  ocx_begin(p->local_user);
  db_open_repository(p->path);
  db_begin_transaction();
  if( db_exists("SELECT 1 FROM delta WHERE srcid IN phantom") ){
    fossil_fatal("the clone is not complete: there are deltas without their basis");
  }
  ocx_bound_keep();
  rebuild_db(0, 0);
  ocx_bound_drop();
  db_end_transaction(0);
  hash_user_password(p->local_user);
  db_close(1);
  return 0;
}

int ocx_mod_adopt_copy(const void *pArg){
  const OcxModAdopt *p = pArg;
  ocx_begin(p->local_user);
  db_open_repository(p->path);
  db_begin_transaction();
  delete_private_content();
  shun_artifacts();
  db_create_default_users(1, p->local_user);
  db_unprotect(PROTECT_CONFIG);
  db_multi_exec("REPLACE INTO config(name,value,mtime)"
                " VALUES('server-code', lower(hex(randomblob(20))), now());"
                "DELETE FROM config WHERE name GLOB 'last-sync-*' OR name GLOB 'sync-*';");
  db_protect_pop();
  db_end_transaction(0);
  hash_user_password(p->local_user);
  db_close(1);
  return 0;
}
