/*
** What OCX asks of Fossil, in Fossil's own terms: how a call begins, commands, an open
** repository.  Each mod_*.c goes through Fossil's generators like any of its sources, so it
** sees every type and function.  An operation may leave at any line: it holds nothing that
** the session does not know.
*/
#include "config.h"
#include "bound.h"
#include "mod_ocx.h"
#include "operations.h"

/*
** Put Fossil's globals into the state that fossil_main() gives a command, without
** what it does to the process (limits, SQLite's settings, the environment).
*/
void ocx_begin(const char *zUser){
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
void ocx_config_in_memory(void){
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
** memory, function (inside an SQL function), module (inside a statement of FTS5's own that runs
** it), endless and sql (not by itself).  For tests of whoever embeds Fossil.
*/
void ocx_fail_cmd(void){
  const char *zKind = g.argc==3 ? g.argv[2] : "";
  if( fossil_strcmp(zKind,"fatal")==0 ) fossil_fatal("a fatal error");
  if( fossil_strcmp(zKind,"panic")==0 ) fossil_panic("a panic");
  if( fossil_strcmp(zKind,"abort")==0 ) abort();
  if( fossil_strcmp(zKind,"exit")==0 ) exit(3);
  if( fossil_strcmp(zKind,"assert")==0 ) assert( g.argc==0 );
  if( fossil_strcmp(zKind,"memory")==0 ) while( fossil_malloc(1<<20) ){}
  if( fossil_strcmp(zKind,"endless")==0 ) for(;;) fossil_free(fossil_malloc(1));
  if( fossil_strcmp(zKind,"sql")==0 ){
    sqlite3_open(":memory:", &g.db);
    db_int(0, "WITH n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n");
  }
  if( fossil_strcmp(zKind,"function")==0 ){
    Stmt q;
    sqlite3_open(":memory:", &g.db);
    sqlite3_create_function(g.db, "ocx_fail", 0, SQLITE_UTF8, 0, ocx_fail_function, 0, 0);
    db_prepare(&q, "WITH n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n)"
                   " SELECT i, CASE WHEN i>5 THEN ocx_fail() END FROM n");
    while( db_step(&q)==SQLITE_ROW ){}
  }
  if( fossil_strcmp(zKind,"module")==0 ){
    sqlite3_open(":memory:", &g.db);
    sqlite3_create_function(g.db, "ocx_fail", 0, SQLITE_UTF8, 0, ocx_fail_function, 0, 0);
    sqlite3_exec(g.db, "CREATE VIEW v AS VALUES(1, 'x'), (2, ocx_fail());"
                       "CREATE VIRTUAL TABLE f USING fts5(column2, content=v, content_rowid=column1);"
                       "INSERT INTO f(f) VALUES('rebuild');", 0, 0, 0);
  }
  usage("fatal|panic|abort|exit|assert|memory|endless|sql|function|module");
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
  /* Without it SQLite compiles a statement anew whenever a value is bound that its plan may
  ** depend on.  That took a seventh of the time of linking check-ins in. */
  sqlite3_db_config(g.db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, 0);
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
int ocx_act_as(const char *zUser){
  g.rcvid = 0;
  g.zIpAddr = 0;
  g.zNonce = 0;
  g.zLogin = fossil_strdup(zUser);
  g.userUid = db_int(0, "SELECT uid FROM user WHERE login=%Q", zUser);
  return g.userUid!=0;
}
