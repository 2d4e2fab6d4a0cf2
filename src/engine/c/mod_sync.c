/*
** Other repositories: the remembered server, clones.
*/
#include "config.h"
#include "bound.h"
#include "mod_sync.h"
#include "operations.h"

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

/*
** An empty repository, which gets the artifacts of another one of the project.
*/
int ocx_mod_new_clone(const void *pArg){
  const OcxModClone *p = pArg;
  ocx_begin(p->local_user);
  db_create_repository(p->path);
  db_open_repository(p->path);
  ocx_config_in_memory();
  db_begin_transaction();
  db_initial_setup(0, 0, p->local_user);
  user_select();
  db_unset("hash-policy", 0);
  db_set("project-code", p->project, 0);
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
