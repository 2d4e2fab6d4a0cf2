/*
** db.c as it is, but statements in static variables outlive a transaction while the session goes on.
** Fossil finalizes them at the end of each transaction, and would prepare them again for each check-in.
*/
#define db_end_transaction fossil_db_end_transaction
#include "db_.c"
#undef db_end_transaction

int ocx_bound_is_kept(void);

#define KEPT_STATEMENTS 128

void db_end_transaction(int rollbackFlag){
  Stmt *aKept[KEPT_STATEMENTS];
  Stmt *p, *pNext;
  int i, n = 0;
  for(p = db.nBegin==1 && ocx_bound_is_kept() ? db.pAllStmt : 0; p && n<KEPT_STATEMENTS; p = pNext){
    pNext = p->pNext;
    /* One on the stack of a function that has returned must not be touched again. */
    if( !ocx_is_static(p) ) continue;
    if( p->pNext ) p->pNext->pPrev = p->pPrev;
    if( p->pPrev ) p->pPrev->pNext = p->pNext;
    if( db.pAllStmt==p ) db.pAllStmt = p->pNext;
    p->pNext = p->pPrev = 0;
    sqlite3_reset(p->pStmt);
    sqlite3_clear_bindings(p->pStmt);
    aKept[n++] = p;
  }
  fossil_db_end_transaction(rollbackFlag);
  for(i=0; i<n; i++){
    p = aKept[i];
    if( p->pStmt==0 ) continue;
    p->pNext = db.pAllStmt;
    if( db.pAllStmt ) db.pAllStmt->pPrev = p;
    db.pAllStmt = p;
  }
}
