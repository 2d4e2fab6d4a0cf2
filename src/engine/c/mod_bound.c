/*
** SQL whose values are bound instead of printed into it.  So a statement is prepared once in a session
** and not for every artifact that is linked in: preparing took a quarter of that time.  Sources behind
** bound.h call these functions instead of those of db.c, with the same arguments.
*/
#include "config.h"
#include "mod_bound.h"
#include <stdarg.h>

#define BOUND_SLOTS 256
#define BOUND_PROBES 16
#define BOUND_VALUES 20

struct BoundSlot {
  const char *zFormat;        /* the caller's text, by which the slot is found */
  char *zCopy;                /* that text, lest its memory hold another one now */
  sqlite3_stmt *pStmt;        /* 0: its values cannot be bound */
  int inUse;
  int nValue;
  char aKind[BOUND_VALUES];   /* 'd', 'g' or 'Q' */
  int aIndex[BOUND_VALUES];   /* the parameter of each value */
};
static struct BoundSlot aBoundSlot[BOUND_SLOTS];
static int isBoundKept = 0;

/*
** Keep statements from now on, until the session ends or ocx_bound_drop() is called.  That must come
** before Fossil's code closes the database.
*/
void ocx_bound_keep(void){
  isBoundKept = !ocx_plain;
}

int ocx_bound_is_kept(void){
  return isBoundKept;
}

/*
** Keep no more statements, and drop those that were kept.
*/
void ocx_bound_drop(void){
  int i;
  for(i=0; i<BOUND_SLOTS; i++){
    sqlite3_finalize(aBoundSlot[i].pStmt);
    fossil_free(aBoundSlot[i].zCopy);
  }
  memset(aBoundSlot, 0, sizeof(aBoundSlot));
  isBoundKept = 0;
}

/*
** Write the SQL of a format, with parameters for the values.  False if a value is part of a
** longer text, or is printed in a way that has no value of its own.
*/
static int bound_sql(struct BoundSlot *p, Blob *pSql){
  const char *z = p->zCopy;
  int isQuoted = 0;
  for(; z[0]; z++){
    int n;
    if( z[0]=='\'' ) isQuoted = !isQuoted;
    if( z[0]!='%' ){
      blob_append_char(pSql, z[0]);
      continue;
    }
    n = z[1]=='d' || z[1]=='Q' ? 2 : strncmp(z, "%.17g", 5)==0 ? 5 : 0;
    if( n==0 || isQuoted || p->nValue==BOUND_VALUES ) return 0;
    z += n-1;
    blob_appendf(pSql, ":ocx%d", p->nValue);
    p->aKind[p->nValue++] = z[0];
  }
  return !isQuoted;
}

static void bound_compile(struct BoundSlot *p){
  Blob sql;
  const char *zRest = 0;
  int i;
  blob_zero(&sql);
  if( bound_sql(p, &sql)
   && sqlite3_prepare_v3(g.db, blob_str(&sql), -1, SQLITE_PREPARE_PERSISTENT, &p->pStmt, &zRest)==SQLITE_OK
  ){
    if( zRest && !fossil_all_whitespace(zRest) ){
      sqlite3_finalize(p->pStmt);
      p->pStmt = 0;
    }
    for(i=0; p->pStmt && i<p->nValue; i++){
      char zName[20];
      sqlite3_snprintf(sizeof(zName), zName, ":ocx%d", i);
      p->aIndex[i] = sqlite3_bind_parameter_index(p->pStmt, zName);
    }
  }
  blob_reset(&sql);
}

/*
** The slot of a format, made if need be; 0 where there is no room.
*/
static struct BoundSlot *bound_slot(const char *zFormat){
  unsigned int iFirst = (unsigned int)((size_t)zFormat>>3);
  int i;
  for(i=0; i<BOUND_PROBES; i++){
    struct BoundSlot *p = &aBoundSlot[(iFirst+i)%BOUND_SLOTS];
    if( p->zFormat==zFormat ) return strcmp(p->zCopy, zFormat)==0 ? p : 0;
    if( p->zFormat==0 ){
      p->zFormat = zFormat;
      p->zCopy = fossil_strdup(zFormat);
      bound_compile(p);
      return p;
    }
  }
  return 0;
}

/*
** The number that r is once it was printed into SQL, with fewer digits than it has, and read by SQLite.
*/
static double bound_real(double r){
  static Stmt q;
  char *z = mprintf("%.17g", r);
  db_static_prepare(&q, "SELECT CAST(:z AS REAL)");
  db_bind_text(&q, ":z", z);
  if( db_step(&q)==SQLITE_ROW ) r = db_column_double(&q, 0);
  db_reset(&q);
  fossil_free(z);
  return r;
}

/*
** A kept statement with the values bound; 0 where the SQL must be printed.
*/
static struct BoundSlot *bound_take(const char *zFormat, va_list ap){
  struct BoundSlot *p = isBoundKept ? bound_slot(zFormat) : 0;
  int i;
  if( p==0 || p->pStmt==0 || p->inUse ) return 0;
  p->inUse = 1;
  for(i=0; i<p->nValue; i++){
    switch( p->aKind[i] ){
      case 'd': sqlite3_bind_int(p->pStmt, p->aIndex[i], va_arg(ap, int)); break;
      case 'g': sqlite3_bind_double(p->pStmt, p->aIndex[i], bound_real(va_arg(ap, double))); break;
      default:
        sqlite3_bind_text(p->pStmt, p->aIndex[i], va_arg(ap, const char*), -1, SQLITE_TRANSIENT);
    }
  }
  return p;
}

/*
** Release a statement.  If its last step failed, the call ends, as in db_finalize().
*/
static int bound_release(struct BoundSlot *p){
  int rc = sqlite3_reset(p->pStmt);
  if( rc!=SQLITE_OK ){
    fossil_fatal("SQL error (%d,%d: %s) while running [%s]", rc, sqlite3_extended_errcode(g.db),
                 sqlite3_errmsg(g.db), sqlite3_sql(p->pStmt));
  }
  sqlite3_clear_bindings(p->pStmt);
  p->inUse = 0;
  return rc;
}

/*
** Begin a query, bound or printed; bound_end() ends it.
*/
static struct BoundSlot *bound_begin(Stmt *pStmt, const char *zFormat, va_list ap){
  struct BoundSlot *p;
  va_list again;
  va_copy(again, ap);
  p = bound_take(zFormat, ap);
  if( p ){
    memset(pStmt, 0, sizeof(*pStmt));
    blob_zero(&pStmt->sql);
    pStmt->pStmt = p->pStmt;
  }else{
    char *zSql = vmprintf(zFormat, again);
    db_prepare(pStmt, "%s", zSql);
    fossil_free(zSql);
  }
  va_end(again);
  return p;
}

static void bound_end(struct BoundSlot *p, Stmt *pStmt){
  if( p ){
    bound_release(p);
  }else{
    db_finalize(pStmt);
  }
}

int ocx_bound_prepare(Stmt *pStmt, const char *zFormat, ...){
  va_list ap;
  va_start(ap, zFormat);
  bound_begin(pStmt, zFormat, ap);
  va_end(ap);
  return SQLITE_OK;
}

int ocx_bound_finalize(Stmt *pStmt){
  int i;
  for(i=0; i<BOUND_SLOTS; i++){
    struct BoundSlot *p = &aBoundSlot[i];
    if( p->inUse && p->pStmt==pStmt->pStmt ){
      pStmt->pStmt = 0;
      return bound_release(p);
    }
  }
  return db_finalize(pStmt);
}

int ocx_bound_multi_exec(const char *zFormat, ...){
  struct BoundSlot *p;
  va_list ap;
  va_start(ap, zFormat);
  p = bound_take(zFormat, ap);
  va_end(ap);
  if( p ){
    while( sqlite3_step(p->pStmt)==SQLITE_ROW ){}
    return bound_release(p);
  }else{
    char *zSql;
    int rc;
    va_start(ap, zFormat);
    zSql = vmprintf(zFormat, ap);
    va_end(ap);
    rc = db_multi_exec("%s", zSql);
    fossil_free(zSql);
    return rc;
  }
}

int ocx_bound_exists(const char *zFormat, ...){
  struct BoundSlot *p;
  Stmt q;
  va_list ap;
  int rc;
  va_start(ap, zFormat);
  p = bound_begin(&q, zFormat, ap);
  va_end(ap);
  rc = db_step(&q)==SQLITE_ROW;
  bound_end(p, &q);
  return rc;
}

int ocx_bound_int(int iDefault, const char *zFormat, ...){
  struct BoundSlot *p;
  Stmt q;
  va_list ap;
  int rc;
  va_start(ap, zFormat);
  p = bound_begin(&q, zFormat, ap);
  va_end(ap);
  rc = db_step(&q)==SQLITE_ROW ? db_column_int(&q, 0) : iDefault;
  bound_end(p, &q);
  return rc;
}

double ocx_bound_double(double rDefault, const char *zFormat, ...){
  struct BoundSlot *p;
  Stmt q;
  va_list ap;
  double r;
  va_start(ap, zFormat);
  p = bound_begin(&q, zFormat, ap);
  va_end(ap);
  r = db_step(&q)==SQLITE_ROW ? db_column_double(&q, 0) : rDefault;
  bound_end(p, &q);
  return r;
}

char *ocx_bound_text(const char *zDefault, const char *zFormat, ...){
  struct BoundSlot *p;
  Stmt q;
  va_list ap;
  char *z;
  va_start(ap, zFormat);
  p = bound_begin(&q, zFormat, ap);
  va_end(ap);
  /* As db_text() has it, NULL in a row is an empty text; a manifest without a comment has one there. */
  z = db_step(&q)==SQLITE_ROW ? fossil_strdup_nn(db_column_text(&q, 0)) : fossil_strdup(zDefault);
  bound_end(p, &q);
  return z;
}
