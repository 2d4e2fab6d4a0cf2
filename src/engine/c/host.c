/*
** The host of Fossil's code: sessions, leaving, memory, handles, streams.
**
** Invariants (numbers as in ../SAFETY.md):
**   1  all writable data of Fossil lies between the section bounds below;
**   2  every exit of Fossil's code ends in leave(), which jumps to run() within C;
**   3  in library mode all of this runs on the engine thread;
**   4  what a session allocated or opened is on its lists, and goes with it.
*/
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <limits.h>
#include <locale.h>
#include <zlib.h>
#include "host.h"
#include "ocx.h"
#include "operations.h"

/* ---- Fossil's writable data: two sections, made by the build ---- */

extern char __start_fsl_data[], __stop_fsl_data[];
extern char __start_fsl_bss[], __stop_fsl_bss[];
#define DATA_SIZE ((size_t)(__stop_fsl_data - __start_fsl_data))
#define BSS_SIZE ((size_t)(__stop_fsl_bss - __start_fsl_bss))

static char *pristine;         /* the image before any call */

static void image_save(char *to){
  memcpy(to, __start_fsl_data, DATA_SIZE);
  memcpy(to + DATA_SIZE, __start_fsl_bss, BSS_SIZE);
}
static void image_load(const char *from){
  memcpy(__start_fsl_data, from, DATA_SIZE);
  memcpy(__start_fsl_bss, from + DATA_SIZE, BSS_SIZE);
}

int ocx_is_static(const void *p){
  const char *z = p;
  return (z>=__start_fsl_data && z<__stop_fsl_data) || (z>=__start_fsl_bss && z<__stop_fsl_bss);
}

/* ---- Compression ---- */

int ocx_compress2(unsigned char *to, unsigned long *nTo, const unsigned char *from, unsigned long nFrom, int level){
  static struct { z_stream z; int ready; } streams[2];  /* zlib never leaves, so a call that ends finds them whole */
  int which = level==Z_BEST_SPEED;
  z_stream *z = &streams[which].z;
  if( (!which && level!=Z_DEFAULT_COMPRESSION) || nFrom>UINT_MAX || *nTo>UINT_MAX
   || (!streams[which].ready && deflateInit(z, level)!=Z_OK)
  ){
    return compress2(to, nTo, from, nFrom, level);
  }
  streams[which].ready = 1;
  deflateReset(z);
  z->next_in = (unsigned char*)from;
  z->avail_in = (unsigned)nFrom;
  z->next_out = to;
  z->avail_out = (unsigned)*nTo;
  if( deflate(z, Z_FINISH)!=Z_STREAM_END ) return Z_BUF_ERROR;
  *nTo = z->total_out;
  return Z_OK;
}
int ocx_compress(unsigned char *to, unsigned long *nTo, const unsigned char *from, unsigned long nFrom){
  return ocx_compress2(to, nTo, from, nFrom, Z_DEFAULT_COMPRESSION);
}

/* ---- Sessions ---- */

typedef struct Block Block;
struct Block {                 /* stands before each allocation */
  Block *next, *prev;
  size_t size;
  size_t mark;                 /* BLOCK_MARK: ours, not libc's */
};
#define BLOCK_MARK ((size_t)0x6f63782d626c6f63ull)

typedef struct Handles {       /* pointers or descriptors, unordered */
  void **items;
  size_t count, room;
} Handles;

struct OcxSession {
  char *image;                 /* Fossil's data between calls */
  Block blocks;                /* head of the ring of allocations */
  size_t memory, max_memory;   /* bytes */
  int out_of_memory;
  Handles databases, files, directories, descriptors;
  Handles functions, modules;  /* names of Fossil's SQL functions and virtual tables */
  OcxAuthorizer authorizer;    /* Fossil's own */
  void *authorizer_arg;
  int (*commit_hook)(void*);   /* Fossil's own */
  void *commit_arg;
};

int ocx_plain;
FILE *ocx_stdin, *ocx_stdout, *ocx_stderr;

static OcxSession *current;    /* the session whose call is running */
static jmp_buf leaving;
static int left_code, left_panicked;
static int busy_timeout_ms = 5000;
static const OcxSync *sync_now;
static OcxSession *lent;       /* the session whose handle Rust uses between calls */
static sqlite3 *lent_db;
static int lent_unprotected;   /* true: it may write to `user` and `config` */

static void handle_add(Handles *h, void *item){
  if( h->count==h->room ){
    size_t room = h->room ? h->room*2 : 16;
    void **items = realloc(h->items, room*sizeof(*items));
    if( items==0 ) return;     /* untracked: leaks at worst */
    h->items = items;
    h->room = room;
  }
  h->items[h->count++] = item;
}
static int handle_drop(Handles *h, void *item){
  for(size_t i=h->count; i>0; i--){
    if( h->items[i-1]==item ){
      h->items[i-1] = h->items[--h->count];
      return 1;
    }
  }
  return 0;
}
static void name_add(Handles *h, const char *name){
  char *copy = strdup(name);
  if( copy ) handle_add(h, copy);
}
static void names_free(Handles *h){
  for(size_t i=0; i<h->count; i++) free(h->items[i]);
  free(h->items);
}
static void *fd_item(int fd){ return (void*)(size_t)(fd+1); }
static int item_fd(void *p){ return (int)(size_t)p - 1; }

size_t ocx_session_memory(const OcxSession *s){ return s->memory; }

/* ---- Streams: output to memory, input empty ---- */

#define MAX_OUTPUT ((size_t)256<<20)
typedef struct Output { char *data; size_t size, room; } Output;
static Output outputs[2];

static ssize_t output_write(void *cookie, const char *data, size_t n){
  Output *o = cookie;
  if( o->size + n > MAX_OUTPUT ) return 0;
  if( o->size + n > o->room ){
    size_t room = (o->size + n)*2;
    char *grown = realloc(o->data, room);
    if( grown==0 ) return 0;
    o->data = grown;
    o->room = room;
  }
  memcpy(o->data + o->size, data, n);
  o->size += n;
  return (ssize_t)n;
}
static ssize_t input_read(void *cookie, char *data, size_t n){
  (void)cookie; (void)data; (void)n;
  return 0;
}
static void output_reset(Output *o){
  o->size = 0;
  if( o->room > ((size_t)1<<20) ){
    free(o->data);
    memset(o, 0, sizeof(*o));
  }
}
static int streams_open(void){
  cookie_io_functions_t write_only = {0}, read_only = {0};
  write_only.write = output_write;
  read_only.read = input_read;
  ocx_stdin = fopencookie(0, "r", read_only);
  ocx_stdout = fopencookie(&outputs[0], "w", write_only);
  ocx_stderr = fopencookie(&outputs[1], "w", write_only);
  return ocx_stdin && ocx_stdout && ocx_stderr;
}

/* ---- Start, sessions, and the one way into Fossil's code ---- */

size_t ocx_start(void){
  size_t size = DATA_SIZE + BSS_SIZE;
  if( size<8*1024 || size>4*1024*1024 ) return 0;
  if( pristine==0 ){
    pristine = malloc(size);
    if( pristine==0 || !streams_open() ) return 0;
    image_save(pristine);
  }
  return size;
}

OcxSession *ocx_session_new(size_t max_memory){
  OcxSession *s = calloc(1, sizeof(*s));
  if( s==0 ) return 0;
  s->image = malloc(DATA_SIZE + BSS_SIZE);
  if( s->image==0 ){ free(s); return 0; }
  memcpy(s->image, pristine, DATA_SIZE + BSS_SIZE);
  s->blocks.next = s->blocks.prev = &s->blocks;
  s->max_memory = max_memory;
  return s;
}

static void database_end(sqlite3 *db){
  sqlite3_stmt *stmt;
  sqlite3_set_authorizer(db, 0, 0);
  sqlite3_commit_hook(db, 0, 0);
  while( (stmt = sqlite3_next_stmt(db, 0))!=0 ) sqlite3_finalize(stmt);
  if( !sqlite3_get_autocommit(db) ) sqlite3_exec(db, "ROLLBACK", 0, 0, 0);
  sqlite3_close_v2(db);
}

void ocx_session_free(OcxSession *s){
  size_t i;
  if( s==0 ) return;
  if( lent==s ) lent = 0;
  /* SQLite calls back into Fossil's functions and data while it closes. */
  image_load(s->image);
  current = s;
  for(i=0; i<s->databases.count; i++) database_end(s->databases.items[i]);
  for(i=0; i<s->files.count; i++) fclose(s->files.items[i]);
  for(i=0; i<s->directories.count; i++) closedir(s->directories.items[i]);
  for(i=0; i<s->descriptors.count; i++) close(item_fd(s->descriptors.items[i]));
  while( s->blocks.next!=&s->blocks ){
    Block *b = s->blocks.next;
    s->blocks.next = b->next;
    free(b);
  }
  current = 0;
  image_load(pristine);
  names_free(&s->functions);
  names_free(&s->modules);
  free(s->databases.items);
  free(s->files.items);
  free(s->directories.items);
  free(s->descriptors.items);
  free(s->image);
  free(s);
}

void ocx_set_busy_timeout_ms(int ms){ busy_timeout_ms = ms; }

/* Runs one function of mod_ocx.c in a session. */
static void run(OcxSession *s, int (*function)(const void*), const void *args, OcxOutcome *o){
  memset(o, 0, sizeof(*o));
  output_reset(&outputs[0]);
  output_reset(&outputs[1]);
  image_load(s->image);
  s->out_of_memory = 0;
  current = s;
  left_code = left_panicked = 0;
  if( setjmp(leaving)==0 ){
    o->code = function(args);
  }else{
    o->left = 1;
    o->code = left_code;
    o->panicked = left_panicked;
  }
  fflush(ocx_stdout);
  fflush(ocx_stderr);
  clearerr(ocx_stdin);
  o->out_of_memory = s->out_of_memory;
  current = 0;
  sync_now = 0;
  image_save(s->image);
  image_load(pristine);
  o->out.data = outputs[0].data;
  o->out.size = outputs[0].size;
  o->err.data = outputs[1].data;
  o->err.size = outputs[1].size;
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
void ocx_change_begin(OcxSession *s, const char *user, sqlite3 **db, OcxOutcome *o){
  OcxModBegin b = { user, db };
  run(s, ocx_mod_change_begin, &b, o);
  if( o->left || o->code ) return;
  lent = s;
  lent_db = *db;
  lent_unprotected = 0;
}
void ocx_change_unprotect(int yes){ lent_unprotected = yes; }
void ocx_change_receipt(OcxSession *s, int *rcvid, OcxOutcome *o){
  run(s, ocx_mod_change_receipt, rcvid, o);
}
void ocx_change_put(OcxSession *s, const OcxArtifact *a, int *rid, OcxOutcome *o){
  OcxModPut p = { a, rid };
  run(s, ocx_mod_change_put, &p, o);
}
void ocx_change_crosslink(OcxSession *s, const OcxStored *stored, size_t count, OcxOutcome *o){
  OcxModCrosslink x = { stored, count };
  run(s, ocx_mod_change_crosslink, &x, o);
}
void ocx_change_filled(OcxSession *s, const int *rids, size_t count, OcxOutcome *o){
  OcxModFilled x = { rids, count };
  run(s, ocx_mod_change_filled, &x, o);
}
void ocx_change_end(OcxSession *s, OcxOutcome *o){
  lent = 0;
  run(s, ocx_mod_change_end, 0, o);
}
void ocx_sync(OcxSession *s, const OcxSync *sync, OcxOutcome *o){
  sync_now = sync;
  run(s, ocx_mod_sync, sync, o);
}
void ocx_set_remote(OcxSession *s, const char *url, const char *password, OcxOutcome *o){
  OcxModRemote r = { url, password };
  run(s, ocx_mod_set_remote, &r, o);
}
void ocx_remote(OcxSession *s, OcxOutcome *o){
  run(s, ocx_mod_remote, 0, o);
}
void ocx_clone(OcxSession *s, const OcxSync *sync, const char *path, OcxOutcome *o){
  OcxModClone c = { sync, path };
  sync_now = sync;
  run(s, ocx_mod_clone, &c, o);
}
void ocx_finish_clone(OcxSession *s, const char *path, const char *local_user, OcxOutcome *o){
  OcxModAdopt a = { path, local_user };
  run(s, ocx_mod_finish_clone, &a, o);
}
void ocx_adopt_copy(OcxSession *s, const char *path, const char *local_user, OcxOutcome *o){
  OcxModAdopt a = { path, local_user };
  run(s, ocx_mod_adopt_copy, &a, o);
}

int fossil_main(int, char**);
/*
** The path of this program, which Fossil would seek by the name it was called by.
*/
char *ocx_fullexename(const char *name){
  static char path[PATH_MAX];
  if( path[0]==0 ){
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path)-1);
    if( n<=0 ) snprintf(path, sizeof(path), "%s", name ? name : "fossil");
  }
  return path;
}

int ocx_plain_main(int argc, char **argv){
  ocx_plain = 1;
  ocx_stdin = stdin;
  ocx_stdout = stdout;
  ocx_stderr = stderr;
  return fossil_main(argc, argv);
}

/* ---- Leaving ---- */

static void leave(int code, int panicked) __attribute__((noreturn));
static void leave(int code, int panicked){
  if( current==0 ) abort();    /* outside a call: invariant 3 is broken */
  left_code = code;
  left_panicked = panicked;
  longjmp(leaving, 1);
}
void ocx_exit(int code){
  if( ocx_plain ) exit(code);
  leave(code, 0);
}
void ocx_abort(void){
  if( ocx_plain ) abort();
  leave(134, 1);
}
void ocx_assert_fail(const char *what, const char *file, unsigned line, const char *function){
  if( ocx_plain ){
    fprintf(stderr, "%s:%u: %s: assertion failed: %s\n", file, line, function, what);
    abort();
  }
  fprintf(ocx_stderr, "assertion failed in %s: %s (%s:%u)\n", function, what, file, line);
  leave(134, 1);
}
int ocx_atexit(void (*f)(void)){ return ocx_plain ? atexit(f) : 0; }
int ocx_raise(int sig){
  if( ocx_plain ) return raise(sig);
  leave(128+sig, 1);
}
void ocx_perror(const char *what){ fprintf(ocx_stderr, "%s: %s\n", what, strerror(errno)); }

/* ---- Memory: libc's allocator, each block on the session's ring ---- */

static int room_for(size_t n){
  OcxSession *s = current;
  if( s->memory + n <= s->max_memory ) return 1;
  if( !s->out_of_memory ){
    /* Fossil needs some memory to say that there is none. */
    s->out_of_memory = 1;
    s->max_memory += (size_t)1<<20;
  }
  return 0;
}
static void *block_link(Block *b, size_t n){
  Block *head = &current->blocks;
  b->size = n;
  b->mark = BLOCK_MARK;
  b->next = head->next;
  b->prev = head;
  head->next->prev = b;
  head->next = b;
  current->memory += n;
  return b+1;
}
static void block_unlink(Block *b){
  b->next->prev = b->prev;
  b->prev->next = b->next;
  current->memory -= b->size;
}
/* NULL for a pointer that libc allocated, such as realpath's. */
__attribute__((no_sanitize_address))
static Block *block_of(void *p){
  Block *b = (Block*)p - 1;
  return b->mark==BLOCK_MARK ? b : 0;
}

void *ocx_malloc(size_t n){
  Block *b;
  if( ocx_plain || current==0 ) return malloc(n);
  if( n>(size_t)PTRDIFF_MAX - sizeof(Block) || !room_for(n) ) return 0;
  b = malloc(sizeof(Block) + n);
  return b ? block_link(b, n) : 0;
}
void *ocx_calloc(size_t k, size_t n){
  void *p;
  if( ocx_plain || current==0 ) return calloc(k, n);
  if( n && k>(size_t)PTRDIFF_MAX/n ) return 0;
  p = ocx_malloc(k*n);
  return p ? memset(p, 0, k*n) : 0;
}
void *ocx_realloc(void *p, size_t n){
  Block *b, *moved;
  if( ocx_plain || current==0 ) return realloc(p, n);
  if( p==0 ) return ocx_malloc(n);
  b = block_of(p);
  if( b==0 ) return realloc(p, n);
  if( n>(size_t)PTRDIFF_MAX - sizeof(Block) ) return 0;
  if( n>b->size && !room_for(n - b->size) ) return 0;
  block_unlink(b);
  moved = realloc(b, sizeof(Block) + n);
  if( moved==0 ){
    block_link(b, b->size);
    return 0;
  }
  return block_link(moved, n);
}
void ocx_free(void *p){
  Block *b;
  if( ocx_plain || current==0 ){ free(p); return; }
  if( p==0 ) return;
  b = block_of(p);
  if( b==0 ){ free(p); return; }
  block_unlink(b);
  b->mark = 0;
  free(b);
}
char *ocx_strndup(const char *z, size_t n){
  size_t k = strnlen(z, n);
  char *p = ocx_malloc(k+1);
  if( p==0 ) return 0;
  memcpy(p, z, k);
  p[k] = 0;
  return p;
}
char *ocx_strdup(const char *z){ return ocx_strndup(z, strlen(z)); }

/* ---- The process: a library starts no process and changes nothing that all share ---- */

static int refused(void){ errno = ENOSYS; return -1; }

/*
** Plain Fossil starts itself by the path of its program, which is this program's
** and needs the word "fossil" before the command.  Gives a copy of the command line
** with that word put in, or 0 where the program is not named in it.
*/
static char *own_command(const char *z){
  static const char word[] = " fossil";
  const char *own = ocx_fullexename(0), *from = z, *at;
  size_t size = strlen(own), hits = 0;
  char *line, *end;
  for(at=z; (at = strstr(at, own))!=0; at += size) hits++;
  if( hits==0 || (line = malloc(strlen(z) + hits*(sizeof(word)-1) + 1))==0 ) return 0;
  for(end=line; (at = strstr(from, own))!=0; from = at){
    at += size;
    if( *at=='\'' || *at=='"' ) at++;
    end = mempcpy(end, from, (size_t)(at-from));
    if( *at==' ' ) end = stpcpy(end, word);
  }
  strcpy(end, from);
  return line;
}

pid_t ocx_fork(void){ return ocx_plain ? fork() : refused(); }
int ocx_system(const char *z){
  char *line;
  int rc;
  if( !ocx_plain ) return refused();
  line = own_command(z);
  rc = system(line ? line : z);
  free(line);
  return rc;
}
FILE *ocx_popen(const char *z, const char *mode){
  char *line;
  FILE *f;
  if( !ocx_plain ){
    refused();
    return 0;
  }
  line = own_command(z);
  f = popen(line ? line : z, mode);
  free(line);
  return f;
}
int ocx_pclose(FILE *f){ return ocx_plain ? pclose(f) : refused(); }
pid_t ocx_wait(int *status){ return ocx_plain ? wait(status) : refused(); }
pid_t ocx_waitpid(pid_t pid, int *status, int flags){
  return ocx_plain ? waitpid(pid, status, flags) : refused();
}
int ocx_execl(const char *path, const char *arg0, ...){
  const char *args[64];
  size_t n = 0;
  va_list ap;
  if( !ocx_plain ) return refused();
  va_start(ap, arg0);
  for(const char *a=arg0; a && n+1<sizeof(args)/sizeof(args[0]); a=va_arg(ap, const char*)){
    char *line = own_command(a);    /* the process becomes another: no one frees it */
    args[n++] = line ? line : a;
  }
  va_end(ap);
  args[n] = 0;
  return execv(path, (char *const*)args);
}
int ocx_execv(const char *path, char *const *argv){ return ocx_plain ? execv(path, argv) : refused(); }
int ocx_execvp(const char *file, char *const *argv){ return ocx_plain ? execvp(file, argv) : refused(); }
pid_t ocx_setsid(void){ return ocx_plain ? setsid() : refused(); }
int ocx_kill(pid_t pid, int sig){ return ocx_plain || sig==0 ? kill(pid, sig) : refused(); }
void (*ocx_signal(int sig, void (*f)(int)))(int){ return ocx_plain ? signal(sig, f) : SIG_DFL; }
int ocx_sigaction(void){ return 0; }
unsigned ocx_alarm(unsigned s){ return ocx_plain ? alarm(s) : 0; }
int ocx_nice(int n){ return ocx_plain ? nice(n) : 0; }
int ocx_setrlimit(int what, const struct rlimit *r){ return ocx_plain ? setrlimit(what, r) : 0; }
int ocx_setuid(uid_t u){ return ocx_plain ? setuid(u) : 0; }
int ocx_setgid(gid_t g){ return ocx_plain ? setgid(g) : 0; }
int ocx_chroot(const char *z){ return ocx_plain ? chroot(z) : refused(); }
char *ocx_getenv(const char *z){ return ocx_plain ? getenv(z) : 0; }
int ocx_setenv(const char *k, const char *v, int over){ return ocx_plain ? setenv(k, v, over) : 0; }
int ocx_putenv(char *z){ return ocx_plain ? putenv(z) : 0; }
char *ocx_getpass(const char *prompt){
  if( ocx_plain ) return getpass(prompt);
  fprintf(ocx_stderr, "a password is needed and none was given (%s)\n", prompt);
  leave(1, 0);
}
int ocx_isatty(int fd){ return ocx_plain ? isatty(fd) : 0; }
struct tm *ocx_gmtime(const time_t *t){
  static struct tm tm;
  return ocx_plain ? gmtime(t) : gmtime_r(t, &tm);
}
struct tm *ocx_localtime(const time_t *t){ return ocx_plain ? localtime(t) : ocx_gmtime(t); }
char *ocx_setlocale(int c, const char *z){ return ocx_plain ? setlocale(c, z) : "C"; }

/* ---- Handles ---- */

static int fd_add(int fd){
  if( fd>=0 && current ) handle_add(&current->descriptors, fd_item(fd));
  return fd;
}
static FILE *file_add(FILE *f){
  if( f && current ) handle_add(&current->files, f);
  return f;
}
int ocx_open(const char *path, int flags, ...){
  mode_t mode = 0;
  va_list ap;
  if( flags & (O_CREAT|O_TMPFILE) ){
    va_start(ap, flags);
    mode = va_arg(ap, mode_t);
    va_end(ap);
  }
  return fd_add(open(path, ocx_plain ? flags : flags|O_CLOEXEC, mode));
}
int ocx_close(int fd){
  if( current && !handle_drop(&current->descriptors, fd_item(fd)) ) return refused();
  return close(fd);
}
FILE *ocx_fopen(const char *path, const char *mode){
  char closing[8];
  if( ocx_plain ) return fopen(path, mode);
  snprintf(closing, sizeof(closing), "%.6se", mode);
  return file_add(fopen(path, closing));
}
FILE *ocx_fdopen(int fd, const char *mode){
  FILE *f = fdopen(fd, mode);
  if( f && current ) handle_drop(&current->descriptors, fd_item(fd));
  return file_add(f);
}
FILE *ocx_freopen(const char *path, const char *mode, FILE *f){
  if( ocx_plain ) return freopen(path, mode, f);
  refused();
  return 0;
}
int ocx_fclose(FILE *f){
  if( current && !handle_drop(&current->files, f) ) return refused();
  return fclose(f);
}
DIR *ocx_opendir(const char *path){
  DIR *d = opendir(path);
  if( d && current ) handle_add(&current->directories, d);
  return d;
}
int ocx_closedir(DIR *d){
  if( current ) handle_drop(&current->directories, d);
  return closedir(d);
}
int ocx_socket(int domain, int type, int protocol){
  return ocx_plain ? socket(domain, type, protocol) : refused();
}
int ocx_accept(int fd, struct sockaddr *a, socklen_t *n){ return ocx_plain ? accept(fd, a, n) : refused(); }
int ocx_pipe(int fds[2]){ return ocx_plain ? pipe(fds) : refused(); }
int ocx_dup(int fd){ return ocx_plain ? dup(fd) : refused(); }
int ocx_dup2(int from, int to){ return ocx_plain ? dup2(from, to) : refused(); }

/* ---- SQLite ---- */

int ocx_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs){
  int rc;
  if( current==0 ) return sqlite3_open_v2(path, db, flags, vfs);
  /* One thread uses it, and a mutex would stay held when a function leaves. */
  rc = sqlite3_open_v2(path, db, (flags & ~SQLITE_OPEN_FULLMUTEX)|SQLITE_OPEN_NOMUTEX, vfs);
  if( *db ) handle_add(&current->databases, *db);
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
  if( rc==SQLITE_OK && current ) handle_drop(&current->databases, db);
  return rc;
}
int ocx_sqlite3_busy_timeout(sqlite3 *db, int ms){
  return sqlite3_busy_timeout(db, current && ms>busy_timeout_ms ? busy_timeout_ms : ms);
}

/* ---- The lent handle: what SQLite calls back is Fossil's only while a call runs ---- */

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
  if( current ){
    return current->authorizer ? current->authorizer(current->authorizer_arg, action, a, b, c, d) : SQLITE_OK;
  }
  return lent==0 || borrower_may(action, a, b) ? SQLITE_OK : SQLITE_DENY;
}
/* Non-zero turns a commit into a rollback: nothing commits but by ocx_change_end(). */
static int commit_hook(void *arg){
  (void)arg;
  if( current==0 ) return 1;
  return current->commit_hook ? current->commit_hook(current->commit_arg) : 0;
}

int ocx_sqlite3_set_authorizer(sqlite3 *db, OcxAuthorizer f, void *arg){
  if( current==0 || f==0 ) return sqlite3_set_authorizer(db, f, arg);
  current->authorizer = f;
  current->authorizer_arg = arg;
  return sqlite3_set_authorizer(db, authorize, 0);
}
void *ocx_sqlite3_commit_hook(sqlite3 *db, int (*f)(void*), void *arg){
  if( current==0 ) return sqlite3_commit_hook(db, f, arg);
  current->commit_hook = f;
  current->commit_arg = arg;
  return sqlite3_commit_hook(db, commit_hook, 0);
}
int ocx_sqlite3_create_function(sqlite3 *db, const char *name, int n, int flags, void *arg,
    void (*function)(sqlite3_context*, int, sqlite3_value**),
    void (*step)(sqlite3_context*, int, sqlite3_value**), void (*final)(sqlite3_context*)){
  if( current ) name_add(&current->functions, name);
  return sqlite3_create_function(db, name, n, flags, arg, function, step, final);
}
int ocx_sqlite3_create_module(sqlite3 *db, const char *name, const sqlite3_module *module, void *arg){
  if( current ) name_add(&current->modules, name);
  return sqlite3_create_module(db, name, module, arg);
}

/* ---- Sync: the round trip belongs to Rust ---- */

const char *ocx_sync_user(void){ return sync_now ? sync_now->user : 0; }
const char *ocx_sync_password(void){ return sync_now ? sync_now->password : 0; }

/*
** What a call keeps outside of its session and its C frames, while it is parked.
*/
typedef struct Parked {
  OcxSession *session;
  const OcxSync *sync;
  jmp_buf leaving;
  Output outputs[2];
} Parked;

/*
** Between park() and unpark() the state is that between two calls, so that other sessions' calls can run, each to
** its end, on the stack above the parked one.
*/
static void park(Parked *p){
  fflush(ocx_stdout);
  fflush(ocx_stderr);
  p->session = current;
  p->sync = sync_now;
  memcpy(&p->leaving, &leaving, sizeof(leaving));
  memcpy(p->outputs, outputs, sizeof(outputs));
  memset(outputs, 0, sizeof(outputs));
  image_save(current->image);
  image_load(pristine);
  current = 0;
  sync_now = 0;
}
static void unpark(const Parked *p){
  for(size_t i=0; i<2; i++) free(outputs[i].data);
  memcpy(outputs, p->outputs, sizeof(outputs));
  memcpy(&leaving, &p->leaving, sizeof(leaving));
  image_load(p->session->image);
  sync_now = p->sync;
  current = p->session;
}

int ocx_exchange(const char *login, size_t nLogin, const char *body, size_t nBody,
                 char **reply, size_t *nReply){
  OcxText card = { login, nLogin }, sent = { body, nBody }, got = { 0, 0 };
  Parked parked;
  int rc;
  *reply = 0;
  *nReply = 0;
  if( sync_now==0 ) return 1;
  park(&parked);
  rc = parked.sync->exchange(parked.sync->context, card, sent, &got);
  unpark(&parked);
  if( rc ) return 1;
  if( got.size<=OCX_MAX_EXPANDED && (*reply = ocx_malloc(got.size+1))!=0 ){
    memcpy(*reply, got.data, got.size);
    (*reply)[got.size] = 0;
    *nReply = got.size;
  }
  sync_now->release(sync_now->context, got);
  return *reply==0;
}
