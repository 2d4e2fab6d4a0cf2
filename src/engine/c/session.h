/*
** What the parts of the host share: a session, the call that runs, and the lists of what it holds.
**
** Invariants (numbers as in ../SAFETY.md):
**   I1  all writable data of Fossil lies in two sections, which image.c saves and loads;
**   I2  every exit of Fossil's code ends in ocx_leave(), which jumps to run() in call.c, within C;
**   I3  in library mode all of this runs on the engine thread;
**   I4  what a session allocated or opened is on its lists, and goes with it.
*/
#ifndef OCX_SESSION_H
#define OCX_SESSION_H

#include <stddef.h>
#include <stdio.h>
#include "host.h"
#include "ocx.h"

typedef struct Block Block;
struct Block {                 /* stands before each allocation */
  Block *next, *prev;
  size_t size;
  size_t mark;                 /* of memory.c: ours, not libc's */
};

typedef struct Handles {       /* pointers or descriptors, the oldest first */
  void **items;
  size_t count, room;
} Handles;

struct OcxSession {
  char *image;                 /* Fossil's data between calls */
  Block blocks;                /* head of the ring of allocations */
  size_t memory, max_memory;   /* bytes */
  int out_of_memory;
  Handles statements;          /* those that Fossil's code prepared, on any of the databases */
  int is_ending;
  Handles databases, files, directories, descriptors;
  Handles functions, modules;  /* names of Fossil's SQL functions and virtual tables */
  OcxAuthorizer authorizer;    /* Fossil's own */
  void *authorizer_arg;
  int (*commit_hook)(void*);   /* Fossil's own */
  void *commit_arg;
};

/* image.c: Fossil's writable data. */
size_t ocx_image_size(void);
void ocx_image_save(char *to);
void ocx_image_load(const char *from);

/* session.c: the image before any call. */
extern char *ocx_pristine;

/* list.c */
extern OcxSession *ocx_current; /* the session whose call is running, or NULL */
void ocx_handle_add(Handles*, void *item);
int ocx_handle_drop(Handles*, void *item);

/* handles.c: a descriptor as an item of a list. */
void *ocx_fd_item(int fd);
int ocx_item_fd(void *item);

/* output.c: what the standard streams of a call have taken. */
typedef struct Output { char *data; size_t size, room; } Output;
extern Output ocx_outputs[2];
int ocx_streams_open(void);
void ocx_outputs_reset(void);

/* database.c */
void ocx_database_end(sqlite3*);
void ocx_lend(OcxSession*, sqlite3*);  /* Rust may use the handle between calls ... */
void ocx_lend_end(void);               /* ... until here */
int ocx_is_lent(const OcxSession*);

/* call.c: ends the call that is running. */
void ocx_leave(int code, int panicked) __attribute__((noreturn));

/* call.c: from another thread, the calls are to end: those that run when they next take memory or step in SQL. */
int ocx_is_interrupted(void);
void ocx_heed_interrupt(void);

/* process.c: -1, with errno set to ENOSYS. */
int ocx_refused(void);

#endif
