/*
** What OCX asks of Fossil, in Fossil's own terms.  This file goes through Fossil's
** generators like any of its sources, so it sees every type and function.  Each
** operation may leave at any line: it holds nothing that the session does not know.
*/
#include "config.h"
#include "bound.h"
#include "mod_ocx.h"
#include "operations.h"

/*
** Put Fossil's globals into the state that fossil_main() gives a command, without
** what it does to the process (limits, SQLite's settings, the environment).
*/
static void ocx_begin(const char *zUser){
  memset(&g, 0, sizeof(g));
  g.now = time(0);
  g.httpHeader = empty_blob;
  g.comFmtFlags = COMMENT_PRINT_UNSET;
  g.json.outOpt = cson_output_opt_empty;
  g.zPhase = "ocx";
  g.nameOfExe = "/dev/null/ocx";
  g.zLogin = zUser ? fossil_strdup(zUser) : 0;
  g.argv = fossil_malloc_zero(2*sizeof(char*));
  g.argv[0] = "ocx";
  g.argc = 1;
  g.argvOrig = g.argv;
}

/*
** Give Fossil a per-user configuration in memory, so that ~/.fossil is never sought.
*/
static void ocx_config_in_memory(void){
  if( sqlite3_open(":memory:", &g.dbConfig)!=SQLITE_OK ) fossil_fatal("out of memory");
  db_set_main_schemaname(g.dbConfig, "configdb");
  db_add_aux_functions(g.dbConfig);
  sqlite3_exec(g.dbConfig, zConfigSchema, 0, 0, 0);
  g.zConfigDbName = fossil_strdup(":memory:");
}

/*
** An SQL function that ends the call from inside SQLite.
*/
static void ocx_fail_function(sqlite3_context *p, int n, sqlite3_value **a){
  fossil_fatal("failed inside an SQL function");
}

/*
** COMMAND: test-ocx-fail
**
** Usage: %fossil test-ocx-fail KIND
**
** Fail in one of the ways that C code can: fatal, panic, abort, assert, exit,
** memory, function (inside an SQL function).  For tests of whoever embeds Fossil.
*/
void ocx_fail_cmd(void){
  const char *zKind = g.argc==3 ? g.argv[2] : "";
  if( fossil_strcmp(zKind,"fatal")==0 ) fossil_fatal("a fatal error");
  if( fossil_strcmp(zKind,"panic")==0 ) fossil_panic("a panic");
  if( fossil_strcmp(zKind,"abort")==0 ) abort();
  if( fossil_strcmp(zKind,"exit")==0 ) exit(3);
  if( fossil_strcmp(zKind,"assert")==0 ) assert( g.argc==0 );
  if( fossil_strcmp(zKind,"memory")==0 ) while( fossil_malloc(1<<20) ){}
  if( fossil_strcmp(zKind,"function")==0 ){
    Stmt q;
    sqlite3_open(":memory:", &g.db);
    sqlite3_create_function(g.db, "ocx_fail", 0, SQLITE_UTF8, 0, ocx_fail_function, 0, 0);
    db_prepare(&q, "WITH n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n)"
                   " SELECT i, CASE WHEN i>5 THEN ocx_fail() END FROM n");
    while( db_step(&q)==SQLITE_ROW ){}
  }
  usage("fatal|panic|abort|exit|assert|memory|function");
}

/*
** Run a command by name.  Prefixes are not accepted, nor are web pages.
*/
int ocx_mod_command(const void *pArg){
  const OcxModCommand *p = pArg;
  const CmdOrPage *pCmd = 0;
  int i;
  ocx_begin(p->user);
  g.argv = fossil_malloc_zero((p->argc+2)*sizeof(char*));
  g.argv[0] = "fossil";
  for(i=0; i<p->argc; i++) g.argv[i+1] = fossil_strdup(p->argv[i]);
  g.argc = p->argc+1;
  g.argvOrig = g.argv;
  if( p->argc<1 || dispatch_name_search(p->argv[0], CMDFLAG_COMMAND, &pCmd) ){
    fossil_fatal("unknown command: %s", p->argc<1 ? "(none)" : p->argv[0]);
  }
  g.zCmdName = pCmd->zName;
  if( file_chdir(p->directory, 0) ) fossil_fatal("no such directory: %s", p->directory);
  ocx_config_in_memory();
  pCmd->xFunc();
  fossil_exit(g.iResultCode);
  return 0;
}

int ocx_mod_open_repository(const void *zPath){
  ocx_begin(0);
  db_open_repository((const char*)zPath);
  /* Not FULL, under which the removal of a rollback journal, so the commit, is not waited for. */
  db_multi_exec("PRAGMA repository.synchronous=EXTRA");
  sqlite3_wal_autocheckpoint(g.db, 1000);
  db_int(0, "PRAGMA repository.data_version");
  ocx_bound_keep();
  return 0;
}

/*
** True when another connection has committed since the last call.  Fossil's caches
** (which artifacts are missing, parsed manifests) are then no longer to be trusted.
*/
int ocx_mod_is_stale(const void *unused){
  static int iSeen = 0;
  int iNow = db_int(0, "PRAGMA repository.data_version");
  int bStale = iSeen!=0 && iSeen!=iNow;
  iSeen = iNow;
  return bStale;
}

/*
** Book what follows under a login.  False if there is no such user.
*/
static int ocx_act_as(const char *zUser){
  g.rcvid = 0;
  g.zIpAddr = 0;
  g.zNonce = 0;
  g.zLogin = fossil_strdup(zUser);
  g.userUid = db_int(0, "SELECT uid FROM user WHERE login=%Q", zUser);
  return g.userUid!=0;
}

/*
** May a check-in on zBranch follow check-in pid?  Gives OCX_STORED or a refusal.
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
** Store one content unless it is there; what it replaces may become a delta from it.
*/
static void ocx_put_content(const OcxContent *p){
  Blob content;
  int rid, old;
  /* Of a size of zero blob_init() makes strlen(). */
  blob_init(&content, p->content.size ? p->content.data : "", (int)p->content.size);
  rid = content_put_ex(&content, p->hash, 0, 0, 0);
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
** it.  Gives its rid, or 0 when Fossil's parser does not take it.
*/
static int ocx_put(const OcxText *pText, const char *zHash, int previous){
  Blob artifact;
  int rid;
  ocx_compress_quickly(pText, &artifact);
  rid = content_put_ex(&artifact, zHash, 0, (int)pText->size, 0);
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
** The planner's statistics must keep up with a repository that grows, those of every
** table (0x10000): where "blob" counts as one row, as in a new repository, Fossil scans
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
  /* What the end of the transaction prepares is not kept. */
  else leaf_do_pending_checks();
  db_end_transaction(rc!=OCX_STORED);
  if( rc==OCX_STORED ) ocx_stored();
  return rc;
}

/*
** A change: one write transaction in several calls, between which Rust uses the same handle.
*/
int ocx_mod_change_begin(const void *pArg){
  const OcxModBegin *p = pArg;
  if( !ocx_act_as(p->user) ) return OCX_NO_USER;
  db_begin_write();
  *p->db = g.db;
  return 0;
}

int ocx_mod_change_receipt(const void *pArg){
  content_rcvid_init(0);
  *(int*)pArg = g.rcvid;
  return 0;
}

int ocx_mod_change_put(const void *pArg){
  const OcxModPut *p = pArg;
  const char *zPrevious = p->artifact->previous;
  int previous = zPrevious ? fast_uuid_to_rid(zPrevious) : 0;
  *p->rid = ocx_put(&p->artifact->text, p->artifact->hash, previous);
  return *p->rid ? 0 : OCX_NOT_ACCEPTED;
}

/*
** The artifacts were stored without Fossil's code, which may think that they are missing.
*/
int ocx_mod_change_crosslink(const void *pArg){
  const OcxModCrosslink *p = pArg;
  size_t i;
  content_clear_cache(0);
  manifest_crosslink_begin();
  for(i=0; i<p->count; i++){
    const OcxStored *pStored = &p->stored[i];
    Blob content;
    /* The parser writes into the text, and the cache of manifests keeps it. */
    blob_init(&content, 0, 0);
    blob_append(&content, pStored->text.data, (int)pStored->text.size);
    if( pStored->text.size==0 && !content_get(pStored->rid, &content) ) continue;
    manifest_crosslink(pStored->rid, &content, MC_NO_ERRORS);
  }
  manifest_crosslink_end(MC_NONE);
  return 0;
}

int ocx_mod_change_filled(const void *pArg){
  const OcxModFilled *p = pArg;
  size_t i;
  content_clear_cache(0);
  for(i=0; i<p->count; i++) after_dephantomize(p->rids[i], 0);
  return 0;
}

int ocx_mod_change_end(const void *unused){
  db_end_transaction(0);
  ocx_stored();
  return 0;
}

/*
** Push and pull.  The real "unsent" table is shadowed while the sync runs, since
** emptying it first would hold the write lock through every wait on the network,
** and would forget what the server then does not take.  The caller empties it.
*/
int ocx_mod_sync(const void *pArg){
  const OcxSync *p = pArg;
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
** The derived tables of a fresh clone are made once, when all artifacts are in and looked into.
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
