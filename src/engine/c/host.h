/*
** What Fossil's code calls in place of libc and SQLite (see shim.h).  In library
** mode every function here runs on the engine thread only.  Each group is a file.
*/
#ifndef OCX_HOST_H
#define OCX_HOST_H

#include <dirent.h>
#include <stdio.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include "sqlite3.h"

/* process.c, output.c */
extern int ocx_plain;                       /* true: this process is plain fossil */
extern FILE *ocx_stdin, *ocx_stdout, *ocx_stderr;

/* call.c */
void ocx_exit(int) __attribute__((noreturn));
void ocx_abort(void) __attribute__((noreturn));
void ocx_assert_fail(const char*, const char*, unsigned, const char*) __attribute__((noreturn));
int ocx_atexit(void (*)(void));
int ocx_raise(int);
void ocx_perror(const char*);
char *ocx_getpass(const char*);

/* memory.c */
void *ocx_malloc(size_t);
void *ocx_calloc(size_t, size_t);
void *ocx_realloc(void*, size_t);
void ocx_free(void*);
char *ocx_strdup(const char*);
char *ocx_strndup(const char*, size_t);

/* process.c */
pid_t ocx_fork(void);
int ocx_system(const char*);
FILE *ocx_popen(const char*, const char*);
int ocx_pclose(FILE*);
pid_t ocx_wait(int*);
pid_t ocx_waitpid(pid_t, int*, int);
int ocx_execl(const char*, const char*, ...);
int ocx_execv(const char*, char *const*);
int ocx_execvp(const char*, char *const*);
pid_t ocx_setsid(void);
int ocx_kill(pid_t, int);
void (*ocx_signal(int, void (*)(int)))(int);
int ocx_sigaction(void);
unsigned ocx_alarm(unsigned);
int ocx_nice(int);
int ocx_setrlimit(int, const struct rlimit*);
int ocx_setuid(uid_t);
int ocx_setgid(gid_t);
int ocx_chroot(const char*);
char *ocx_getenv(const char*);
int ocx_setenv(const char*, const char*, int);
int ocx_putenv(char*);
int ocx_isatty(int);
struct tm *ocx_localtime(const time_t*);
struct tm *ocx_gmtime(const time_t*);
char *ocx_setlocale(int, const char*);

/* handles.c */
int ocx_open(const char*, int, ...);
int ocx_close(int);
FILE *ocx_fopen(const char*, const char*);
FILE *ocx_fdopen(int, const char*);
FILE *ocx_freopen(const char*, const char*, FILE*);
int ocx_fclose(FILE*);
DIR *ocx_opendir(const char*);
int ocx_closedir(DIR*);
int ocx_socket(int, int, int);
int ocx_accept(int, struct sockaddr*, socklen_t*);
int ocx_pipe(int[2]);
int ocx_dup(int);
int ocx_dup2(int, int);

/* database.c */
int ocx_sqlite3_open(const char*, sqlite3**);
int ocx_sqlite3_open_v2(const char*, sqlite3**, int, const char*);
int ocx_sqlite3_close(sqlite3*);
int ocx_sqlite3_prepare(sqlite3*, const char*, int, sqlite3_stmt**, const char**);
int ocx_sqlite3_prepare_v2(sqlite3*, const char*, int, sqlite3_stmt**, const char**);
int ocx_sqlite3_prepare_v3(sqlite3*, const char*, int, unsigned, sqlite3_stmt**, const char**);
int ocx_sqlite3_finalize(sqlite3_stmt*);
int ocx_sqlite3_exec(sqlite3*, const char*, int (*)(void*, int, char**, char**), void*, char**);
int ocx_sqlite3_busy_timeout(sqlite3*, int);
typedef int (*OcxAuthorizer)(void*, int, const char*, const char*, const char*, const char*);
int ocx_sqlite3_set_authorizer(sqlite3*, OcxAuthorizer, void*);
void *ocx_sqlite3_commit_hook(sqlite3*, int (*)(void*), void*);
int ocx_sqlite3_create_function(sqlite3*, const char*, int, int, void*,
  void (*)(sqlite3_context*, int, sqlite3_value**), void (*)(sqlite3_context*, int, sqlite3_value**),
  void (*)(sqlite3_context*));
int ocx_sqlite3_create_module(sqlite3*, const char*, const sqlite3_module*, void*);

/* image.c: whether a variable lives as long as its session. */
int ocx_is_static(const void*);

/* compress.c: zlib's compress() and compress2().  The bytes are the same; the tables are kept
** from one text to the next. */
int ocx_compress(unsigned char *to, unsigned long *nTo, const unsigned char *from, unsigned long nFrom);
int ocx_compress2(unsigned char *to, unsigned long *nTo, const unsigned char *from, unsigned long nFrom, int level);

/* The largest artifact or reply that is expanded, in bytes. */
#define OCX_MAX_EXPANDED 0x7fff0000u

#endif
