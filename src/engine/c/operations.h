/*
** The operations that the mod_*.c offer to call.c.  Each runs inside run(), so it may
** leave at any line.  Each takes a pointer to its arguments and returns a result code.
*/
#ifndef OCX_OPERATIONS_H
#define OCX_OPERATIONS_H
#include "ocx.h"
#include "sqlite3.h"

typedef struct OcxModCommand { const char *directory; int argc; const char *const *argv; const char *user; } OcxModCommand;
typedef struct OcxModClone { const char *path, *local_user, *project; } OcxModClone;
typedef struct OcxModRemote { const char *url, *password; } OcxModRemote;
typedef struct OcxModAdopt { const char *path, *local_user; } OcxModAdopt;
typedef struct OcxModBegin { const char *user; sqlite3 **db; } OcxModBegin;
typedef struct OcxModPut { const OcxArtifact *artifact; int *rid; } OcxModPut;
typedef struct OcxModLink { const OcxStored *stored; size_t count; } OcxModLink;
typedef struct OcxModFilled { const int *rids; size_t count; } OcxModFilled;

int ocx_mod_command(const void*);          /* OcxModCommand */
int ocx_mod_open_repository(const void*);  /* path */
int ocx_mod_is_stale(const void*);
int ocx_mod_check_in_begin(const void*);
int ocx_mod_check_in(const void*);         /* OcxCheckIn */
int ocx_mod_transaction_begin(const void*);     /* OcxModBegin */
int ocx_mod_transaction_receipt(const void*);   /* int*: where the number goes */
int ocx_mod_transaction_put(const void*);       /* OcxModPut */
int ocx_mod_transaction_link_begin(const void*);
int ocx_mod_transaction_link(const void*);      /* OcxModLink */
int ocx_mod_transaction_link_end(const void*);
int ocx_mod_transaction_filled(const void*);    /* OcxModFilled */
int ocx_mod_transaction_end(const void*);
int ocx_mod_set_remote(const void*);       /* OcxModRemote */
int ocx_mod_remote(const void*);
int ocx_mod_new_clone(const void*);        /* OcxModClone */
int ocx_mod_adopt_copy(const void*);       /* OcxModAdopt */

#endif
