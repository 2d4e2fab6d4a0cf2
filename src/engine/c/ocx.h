/*
** Everything that Rust may call.  bindings.rs is made from this file.
**
** A session is one state of Fossil's code: a copy of all its writable data, the
** memory it allocated and the handles it opened.  Calls on a session run on one
** thread, the engine thread; a call either returns or leaves (Fossil's exit), and
** leaving never passes a Rust frame.
*/
#ifndef OCX_H
#define OCX_H

#include <stddef.h>

typedef struct OcxSession OcxSession;
struct sqlite3;

typedef struct OcxText {
  const char *data;     /* not NUL-terminated unless said */
  size_t size;          /* bytes */
} OcxText;

/* How a call ended. */
typedef struct OcxOutcome {
  int left;             /* true: Fossil called exit, abort or failed an assert */
  int code;             /* its exit code, or the function's result */
  int panicked;         /* true: abort or assert, not an ordinary exit */
  int out_of_memory;    /* true: the session's memory limit was reached */
  OcxText out;          /* standard output, valid until the next call on any session */
  OcxText err;          /* standard error, likewise */
} OcxOutcome;

/* Takes the snapshot.  Returns the bytes of Fossil's writable data, or 0 if they are
** not plausible: then nothing else may be called. */
size_t ocx_start(void);

/* A pristine session whose C code may hold at most max_memory bytes; NULL: no memory. */
OcxSession *ocx_session_new(size_t max_memory);

/* Closes all that the session opened and frees all it allocated. */
void ocx_session_free(OcxSession*);

/* Bytes of memory that the session holds. */
size_t ocx_session_memory(const OcxSession*);

/* Sets how long SQLite waits for a lock held elsewhere, for connections opened from now on. */
void ocx_set_busy_timeout_ms(int);

/* From any thread: calls and SQL that run end as soon as they can, and those that begin end at once; or no longer. */
void ocx_interrupt(int yes);

/* Runs one Fossil command in a directory; argv[0] is the command's name.  Left is the normal end. */
void ocx_command(OcxSession*, const char *directory, int argc, const char *const *argv, const char *user,
                 OcxOutcome*);

/* Opens a repository and keeps it open. */
void ocx_open_repository(OcxSession*, const char *path, OcxOutcome*);

/* code is 1 when another connection has changed the repository since the last call here. */
void ocx_is_stale(OcxSession*, OcxOutcome*);

/* One file content that a check-in brings. */
typedef struct OcxContent {
  const char *hash;     /* its name: 40 or 64 hex digits, NUL-terminated */
  OcxText content;
  const char *previous; /* hash of the version before, which may become a delta from it; or NULL */
} OcxContent;

typedef struct OcxCheckIn {
  const char *user;            /* login that the artifacts are received from */
  const char *parent;          /* full hash */
  const char *branch;          /* the branch of the new check-in */
  int allow_fork;              /* true: a second leaf on the branch is wanted */
  const OcxContent *contents;
  size_t content_count;
  OcxText manifest;
  const char *manifest_hash;
  int is_private;
  const char *note;            /* kept with the record of the reception: unique; or NULL */
} OcxCheckIn;

/* Refusals of ocx_check_in, in OcxOutcome.code; nothing is stored then. */
#define OCX_STORED 0
#define OCX_NO_USER 1          /* the user table has no such login */
#define OCX_NO_PARENT 2        /* the parent is not a check-in here */
#define OCX_WOULD_FORK 3       /* the parent is not a leaf of the branch, or the branch has another open leaf */
#define OCX_BRANCH_CLOSED 4    /* the parent is a closed leaf and the branch is the same */
#define OCX_PARENT_YOUNGER 5   /* the parent's time is not before the new check-in's */
#define OCX_NOT_ACCEPTED 6     /* Fossil's parser does not take the artifact */

/* Begins the write transaction of a check-in; then ocx_check_in() must follow, or the session be freed. */
void ocx_check_in_begin(OcxSession*, OcxOutcome*);

/* Stores a check-in in that transaction, and ends it: contents, manifest, derived tables. */
void ocx_check_in(OcxSession*, const OcxCheckIn*, OcxOutcome*);

/* Begins a write transaction as a user and lends the repository's handle.  Between calls
** others may use the handle, and can neither commit nor reach Fossil's code through it.
** code is OCX_NO_USER, or 0 with the handle in *db.  After anything but 0 here or in the
** calls below, the session can only be freed, which rolls back. */
void ocx_transaction_begin(OcxSession*, const char *user, struct sqlite3 **db, OcxOutcome*);

/* Whether statements prepared on the lent handle may write to `user` and `config`. */
void ocx_transaction_unprotect(int yes);

/* Sets *rcvid to the number under which this transaction receives artifacts. */
void ocx_transaction_receipt(OcxSession*, int *rcvid, OcxOutcome*);

typedef struct OcxArtifact {
  const char *hash;     /* its name */
  OcxText text;
  const char *previous; /* hash of an artifact that becomes a delta from it; or NULL */
} OcxArtifact;

/* Stores a control artifact and links it in.  code is OCX_NOT_ACCEPTED, or 0 with its number in *rid. */
void ocx_transaction_put(OcxSession*, const OcxArtifact*, int *rid, OcxOutcome*);

typedef struct OcxStored {
  int rid;
  OcxText text;         /* what the artifact is, expanded; of no size where Fossil's code is to expand it */
} OcxStored;

/* Links stored artifacts in: check-ins, tags, pages; mere contents are passed over. Between a begin and an end there may
** be several calls. */
void ocx_transaction_link_begin(OcxSession*, OcxOutcome*);
void ocx_transaction_link(OcxSession*, const OcxStored *stored, size_t count, OcxOutcome*);
void ocx_transaction_link_end(OcxSession*, OcxOutcome*);

/* Links in what has waited for stored artifacts that were known without their content. */
void ocx_transaction_filled(OcxSession*, const int *rids, size_t count, OcxOutcome*);

/* Commits.  The borrower's statements are gone by then. */
void ocx_transaction_end(OcxSession*, OcxOutcome*);

/* Remembers a server as Fossil does, the password obscured; NULL for none. */
void ocx_set_remote(OcxSession*, const char *url, const char *password, OcxOutcome*);

/* Standard output is the remembered URL, a newline, and the password. */
void ocx_remote(OcxSession*, OcxOutcome*);

/* Makes a repository file for a clone: without artifacts, of that project; local_user may do everything in it. */
void ocx_new_clone(OcxSession*, const char *path, const char *local_user, const char *project, OcxOutcome*);

/* Makes a copied repository file a clone: private and shunned content goes, local_user is its admin. */
void ocx_adopt_copy(OcxSession*, const char *path, const char *local_user, OcxOutcome*);

/* The whole process becomes plain fossil.  Returns its exit code or does not return. */
int ocx_plain_main(int argc, char **argv);

#endif
