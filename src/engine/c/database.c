/*
** Databases and statements: a session knows those that its code opened, and one database can be lent.
*/
#include <stdlib.h>
#include <string.h>
#include "session.h"

static int busy_timeout_ms = 5000;
static OcxSession *lent;       /* the session whose handle Rust uses between calls */
static sqlite3 *lent_db;
static int lent_unprotected;   /* true: it may write to `user` and `config` */

void ocx_set_busy_timeout_ms(int ms){ busy_timeout_ms = ms; }

/* Steps of SQL between two looks at whether it was interrupted. */
#define INTERRUPT_STEPS 10000

static int stop_sql(void *arg){
  (void)arg;
  return ocx_is_interrupted();
}

int ocx_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs){
  int rc;
  if( ocx_current==0 ) return sqlite3_open_v2(path, db, flags, vfs);
  /* One thread uses it, and a mutex would stay held when a function leaves. */
  rc = sqlite3_open_v2(path, db, (flags & ~SQLITE_OPEN_FULLMUTEX)|SQLITE_OPEN_NOMUTEX, vfs);
  if( *db ){
    ocx_handle_add(&ocx_current->databases, *db);
    sqlite3_progress_handler(*db, INTERRUPT_STEPS, stop_sql, 0);
  }
  return rc;
}
int ocx_sqlite3_open(const char *path, sqlite3 **db){
  return ocx_sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE, 0);
}
int ocx_sqlite3_close(sqlite3 *db){
  int rc;
  /* A fatal error closes what is open; the borrower still has this one, and it ends with the session. */
  if( lent && db==lent_db ) return SQLITE_BUSY;
  rc = sqlite3_close(db);
  if( rc==SQLITE_OK && ocx_current ) ocx_handle_drop(&ocx_current->databases, db);
  return rc;
}
int ocx_sqlite3_busy_timeout(sqlite3 *db, int ms){
  return sqlite3_busy_timeout(db, ocx_current && ms>busy_timeout_ms ? busy_timeout_ms : ms);
}

/* ---- Statements: those of Fossil's code, and never those that SQLite's modules keep for themselves ---- */

static sqlite3_stmt *statement_add(sqlite3_stmt *stmt){
  if( stmt && ocx_current ) ocx_handle_add(&ocx_current->statements, stmt);
  return stmt;
}
int ocx_sqlite3_prepare(sqlite3 *db, const char *sql, int n, sqlite3_stmt **stmt, const char **tail){
  int rc = sqlite3_prepare(db, sql, n, stmt, tail);
  statement_add(*stmt);
  return rc;
}
int ocx_sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **stmt, const char **tail){
  return ocx_sqlite3_prepare_v3(db, sql, n, 0, stmt, tail);
}
int ocx_sqlite3_prepare_v3(sqlite3 *db, const char *sql, int n, unsigned flags, sqlite3_stmt **stmt,
    const char **tail){
  int rc = sqlite3_prepare_v3(db, sql, n, flags, stmt, tail);
  statement_add(*stmt);
  return rc;
}
/*
** While a session ends, a module of Fossil's may finalize a statement that has already gone.
*/
int ocx_sqlite3_finalize(sqlite3_stmt *stmt){
  OcxSession *s = ocx_current;
  if( s && !ocx_handle_drop(&s->statements, stmt) && s->is_ending ) return SQLITE_OK;
  return sqlite3_finalize(stmt);
}

/* Call back with the row that a statement of ocx_sqlite3_exec() stands on. */
static int exec_row(sqlite3_stmt *stmt, int (*callback)(void*, int, char**, char**), void *arg){
  int n = sqlite3_column_count(stmt);
  char **texts = sqlite3_malloc64(sizeof(char*)*2*((size_t)n+1));
  int stop;
  if( texts==0 ) return SQLITE_NOMEM;
  for(int i=0; i<n; i++){
    texts[i] = (char*)sqlite3_column_text(stmt, i);
    texts[n+1+i] = (char*)sqlite3_column_name(stmt, i);
  }
  texts[n] = texts[2*n+1] = 0;
  stop = callback(arg, n, texts, texts+n+1);
  sqlite3_free(texts);
  return stop ? SQLITE_ABORT : SQLITE_OK;
}
/*
** sqlite3_exec() with statements that are known, since Fossil's functions may leave from within them.
*/
int ocx_sqlite3_exec(sqlite3 *db, const char *sql, int (*callback)(void*, int, char**, char**), void *arg,
    char **message){
  int rc = SQLITE_OK;
  if( ocx_current==0 ) return sqlite3_exec(db, sql, callback, arg, message);
  if( message ) *message = 0;
  while( rc==SQLITE_OK && sql && sql[0] ){
    sqlite3_stmt *stmt = 0;
    int own = SQLITE_OK;       /* what this function itself has to say */
    rc = ocx_sqlite3_prepare_v2(db, sql, -1, &stmt, &sql);
    if( stmt==0 ) continue;    /* a comment, or an error */
    while( own==SQLITE_OK && sqlite3_step(stmt)==SQLITE_ROW ){
      if( callback ) own = exec_row(stmt, callback, arg);
    }
    rc = ocx_sqlite3_finalize(stmt);
    if( own!=SQLITE_OK ) rc = own;
    if( own!=SQLITE_OK && message ) *message = sqlite3_mprintf("%s", sqlite3_errstr(own));
  }
  if( rc!=SQLITE_OK && message && *message==0 ) *message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
  return rc;
}

/* The oldest statement of Fossil's on a connection.  It may hold others, through a cursor. */
static sqlite3_stmt *statement_of(const Handles *h, sqlite3 *db){
  for(size_t i=0; i<h->count; i++){
    if( sqlite3_db_handle(h->items[i])==db ) return h->items[i];
  }
  return 0;
}
/*
** End every run of a statement.  A reset may finalize others, so the search begins again.
*/
static void reset_all(sqlite3 *db){
  sqlite3_stmt *stmt = 0;
  while( (stmt = sqlite3_next_stmt(db, stmt))!=0 ){
    if( !sqlite3_stmt_busy(stmt) ) continue;
    sqlite3_reset(stmt);
    stmt = 0;
  }
}
/*
** Close a connection that Fossil's code has left open.  SQLite's modules (FTS5, for one) finalize their
** own statements as they are disconnected.  A statement within SQLite over which a function has jumped has no
** owner any more: it keeps the connection's memory, but no lock.
*/
void ocx_database_end(sqlite3 *db){
  sqlite3_stmt *stmt;
  sqlite3_set_authorizer(db, 0, 0);
  sqlite3_commit_hook(db, 0, 0);
  while( (stmt = statement_of(&ocx_current->statements, db))!=0 ) ocx_sqlite3_finalize(stmt);
  reset_all(db);
  if( !sqlite3_get_autocommit(db) ) sqlite3_exec(db, "ROLLBACK", 0, 0, 0);
  /* Others may have the file open, so this may not be the close that folds the log in.  It waits for nobody. */
  sqlite3_busy_timeout(db, 0);
  sqlite3_wal_checkpoint_v2(db, 0, SQLITE_CHECKPOINT_TRUNCATE, 0, 0);
  sqlite3_close_v2(db);
}

/* ---- The lent handle: while no call runs, SQLite calls nothing of Fossil's ---- */

void ocx_lend(OcxSession *s, sqlite3 *db){
  lent = s;
  lent_db = db;
  lent_unprotected = 0;
}
void ocx_lend_end(void){ lent = 0; }
int ocx_is_lent(const OcxSession *s){ return lent==s; }
void ocx_transaction_unprotect(int yes){ lent_unprotected = yes; }

static void name_add(Handles *h, const char *name){
  char *copy = strdup(name);
  if( copy ) ocx_handle_add(h, copy);
}
static int names_has(const Handles *h, const char *name){
  for(size_t i=0; name && i<h->count; i++){
    if( sqlite3_stricmp(name, h->items[i])==0 ) return 1;
  }
  return 0;
}

/*
** What a borrower may ask for.  A statement that would run Fossil's code is refused, since that
** code could leave and would jump over the borrower.  "protected_setting" is safe: a trigger on
** `config` asks it, and with Fossil's data as before any call it answers 0 and does no more.
*/
static int borrower_may(int action, const char *a, const char *b){
  switch( action ){
    case SQLITE_FUNCTION:
      return !names_has(&lent->functions, b) || sqlite3_stricmp(b, "protected_setting")==0;
    case SQLITE_CREATE_VTABLE: case SQLITE_DROP_VTABLE: case SQLITE_ATTACH: case SQLITE_DETACH:
      return 0;
    case SQLITE_READ:
      return !names_has(&lent->modules, a) && sqlite3_strnicmp(a, "fts", 3)!=0;
    case SQLITE_INSERT: case SQLITE_UPDATE: case SQLITE_DELETE:
      if( sqlite3_strnicmp(a, "fts", 3)==0 ) return 0;
      if( sqlite3_stricmp(a, "user")==0 || sqlite3_stricmp(a, "config")==0 ) return lent_unprotected;
      return 1;
    default:
      return 1;
  }
}
static int authorize(void *arg, int action, const char *a, const char *b, const char *c, const char *d){
  (void)arg;
  OcxSession *s = ocx_current;
  if( s ) return s->authorizer ? s->authorizer(s->authorizer_arg, action, a, b, c, d) : SQLITE_OK;
  return lent==0 || borrower_may(action, a, b) ? SQLITE_OK : SQLITE_DENY;
}
/* Non-zero turns a commit into a rollback: nothing commits but by ocx_transaction_end(). */
static int commit_hook(void *arg){
  (void)arg;
  if( ocx_current==0 ) return 1;
  return ocx_current->commit_hook ? ocx_current->commit_hook(ocx_current->commit_arg) : 0;
}

int ocx_sqlite3_set_authorizer(sqlite3 *db, OcxAuthorizer f, void *arg){
  if( ocx_current==0 || f==0 ) return sqlite3_set_authorizer(db, f, arg);
  ocx_current->authorizer = f;
  ocx_current->authorizer_arg = arg;
  return sqlite3_set_authorizer(db, authorize, 0);
}
void *ocx_sqlite3_commit_hook(sqlite3 *db, int (*f)(void*), void *arg){
  if( ocx_current==0 ) return sqlite3_commit_hook(db, f, arg);
  ocx_current->commit_hook = f;
  ocx_current->commit_arg = arg;
  return sqlite3_commit_hook(db, commit_hook, 0);
}
int ocx_sqlite3_create_function(sqlite3 *db, const char *name, int n, int flags, void *arg,
    void (*function)(sqlite3_context*, int, sqlite3_value**),
    void (*step)(sqlite3_context*, int, sqlite3_value**), void (*final)(sqlite3_context*)){
  if( ocx_current ) name_add(&ocx_current->functions, name);
  return sqlite3_create_function(db, name, n, flags, arg, function, step, final);
}
int ocx_sqlite3_create_module(sqlite3 *db, const char *name, const sqlite3_module *module, void *arg){
  if( ocx_current ) name_add(&ocx_current->modules, name);
  return sqlite3_create_module(db, name, module, arg);
}
