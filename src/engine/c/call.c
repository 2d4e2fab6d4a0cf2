/*
** A call: the one way into Fossil's code, and the ways out of it.
*/
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "operations.h"
#include "session.h"

static jmp_buf leaving;
static int left_code, left_panicked;
static int interrupted;        /* another thread wants the calls to end */
static int is_running;         /* `leaving` leads somewhere */

/* Runs one operation of operations.h in a session. */
static void run(OcxSession *s, int (*function)(const void*), const void *args, OcxOutcome *o){
  memset(o, 0, sizeof(*o));
  ocx_outputs_reset();
  ocx_image_load(s->image);
  s->out_of_memory = 0;
  ocx_current = s;
  left_code = left_panicked = 0;
  is_running++;
  if( setjmp(leaving)==0 ){
    ocx_heed_interrupt();
    o->code = function(args);
  }else{
    o->left = 1;
    o->code = left_code;
    o->panicked = left_panicked;
  }
  is_running--;
  fflush(ocx_stdout);
  fflush(ocx_stderr);
  clearerr(ocx_stdin);
  o->out_of_memory = s->out_of_memory;
  ocx_current = 0;
  ocx_image_save(s->image);
  ocx_image_load(ocx_pristine);
  o->out.data = ocx_outputs[0].data;
  o->out.size = ocx_outputs[0].size;
  o->err.data = ocx_outputs[1].data;
  o->err.size = ocx_outputs[1].size;
}

void ocx_command(OcxSession *s, const char *directory, int argc, const char *const *argv, const char *user,
                 OcxOutcome *o){
  OcxModCommand c = { directory, argc, argv, user };
  run(s, ocx_mod_command, &c, o);
  if( chdir("/") ){ /* the engine's own directory, so that the caller's can be removed */ }
}
void ocx_open_repository(OcxSession *s, const char *path, OcxOutcome *o){
  run(s, ocx_mod_open_repository, path, o);
}
void ocx_is_stale(OcxSession *s, OcxOutcome *o){
  run(s, ocx_mod_is_stale, 0, o);
}
void ocx_check_in_begin(OcxSession *s, OcxOutcome *o){
  run(s, ocx_mod_check_in_begin, 0, o);
}
void ocx_check_in(OcxSession *s, const OcxCheckIn *c, OcxOutcome *o){
  run(s, ocx_mod_check_in, c, o);
}
void ocx_transaction_begin(OcxSession *s, const char *user, sqlite3 **db, OcxOutcome *o){
  OcxModBegin b = { user, db };
  run(s, ocx_mod_transaction_begin, &b, o);
  if( o->left || o->code ) return;
  ocx_lend(s, *db);
}
void ocx_transaction_receipt(OcxSession *s, int *rcvid, OcxOutcome *o){
  run(s, ocx_mod_transaction_receipt, rcvid, o);
}
void ocx_transaction_put(OcxSession *s, const OcxArtifact *a, int *rid, OcxOutcome *o){
  OcxModPut p = { a, rid };
  run(s, ocx_mod_transaction_put, &p, o);
}
void ocx_transaction_link_begin(OcxSession *s, OcxOutcome *o){
  run(s, ocx_mod_transaction_link_begin, 0, o);
}
void ocx_transaction_link(OcxSession *s, const OcxStored *stored, size_t count, OcxOutcome *o){
  OcxModLink x = { stored, count };
  run(s, ocx_mod_transaction_link, &x, o);
}
void ocx_transaction_link_end(OcxSession *s, OcxOutcome *o){
  run(s, ocx_mod_transaction_link_end, 0, o);
}
void ocx_transaction_filled(OcxSession *s, const int *rids, size_t count, OcxOutcome *o){
  OcxModFilled x = { rids, count };
  run(s, ocx_mod_transaction_filled, &x, o);
}
void ocx_transaction_end(OcxSession *s, OcxOutcome *o){
  ocx_lend_end();
  run(s, ocx_mod_transaction_end, 0, o);
}
void ocx_set_remote(OcxSession *s, const char *url, const char *password, OcxOutcome *o){
  OcxModRemote r = { url, password };
  run(s, ocx_mod_set_remote, &r, o);
}
void ocx_remote(OcxSession *s, OcxOutcome *o){
  run(s, ocx_mod_remote, 0, o);
}
void ocx_new_clone(OcxSession *s, const char *path, const char *local_user, const char *project, OcxOutcome *o){
  OcxModClone c = { path, local_user, project };
  run(s, ocx_mod_new_clone, &c, o);
}
void ocx_adopt_copy(OcxSession *s, const char *path, const char *local_user, OcxOutcome *o){
  OcxModAdopt a = { path, local_user };
  run(s, ocx_mod_adopt_copy, &a, o);
}

/* ---- The ways out ---- */

void ocx_leave(int code, int panicked){
  if( ocx_current==0 ) abort();    /* outside a call: I3 is broken */
  left_code = code;
  left_panicked = panicked;
  longjmp(leaving, 1);
}
void ocx_interrupt(int yes){
  __atomic_store_n(&interrupted, yes, __ATOMIC_SEQ_CST);
}
int ocx_is_interrupted(void){
  return __atomic_load_n(&interrupted, __ATOMIC_RELAXED);
}
/*
** Ends the call that is running if it was interrupted.  Fossil's code comes here whenever it takes memory.
*/
void ocx_heed_interrupt(void){
  if( !is_running || !ocx_is_interrupted() ) return;
  fprintf(ocx_stderr, "interrupted: the program ends\n");
  ocx_leave(1, 0);
}
void ocx_exit(int code){
  if( ocx_plain ) exit(code);
  ocx_leave(code, 0);
}
void ocx_abort(void){
  if( ocx_plain ) abort();
  ocx_leave(134, 1);
}
void ocx_assert_fail(const char *what, const char *file, unsigned line, const char *function){
  if( ocx_plain ){
    fprintf(stderr, "%s:%u: %s: assertion failed: %s\n", file, line, function, what);
    abort();
  }
  fprintf(ocx_stderr, "assertion failed in %s: %s (%s:%u)\n", function, what, file, line);
  ocx_leave(134, 1);
}
int ocx_atexit(void (*f)(void)){ return ocx_plain ? atexit(f) : 0; }
int ocx_raise(int sig){
  if( ocx_plain ) return raise(sig);
  ocx_leave(128+sig, 1);
}
char *ocx_getpass(const char *prompt){
  if( ocx_plain ) return getpass(prompt);
  fprintf(ocx_stderr, "a password is needed and none was given (%s)\n", prompt);
  ocx_leave(1, 0);
}
void ocx_perror(const char *what){ fprintf(ocx_stderr, "%s: %s\n", what, strerror(errno)); }
