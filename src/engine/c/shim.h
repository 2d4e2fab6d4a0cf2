/*
** Force-included into every Fossil object.  What a library must not do goes to the
** functions of host.h instead of libc or SQLite.  Macros redirect the names after all
** system headers are in, so Fossil's sources stay as they are.  <ctype.h> is left out:
** Fossil has variables of the names that are macros there.
**
** In plain mode (`ocx fossil ...`) those functions hand each call on to libc unchanged.
*/
#ifndef OCX_SHIM_H
#define OCX_SHIM_H

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <memory.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include "sqlite3.h"
#include "zlib.h"
#include "host.h"

/* Leaving */
#define exit ocx_exit
#define _exit ocx_exit
#define abort ocx_abort
#define atexit ocx_atexit
#define raise ocx_raise
#define __assert_fail ocx_assert_fail

/* Standard streams */
#undef stdin
#undef stdout
#undef stderr
#define stdin ocx_stdin
#define stdout ocx_stdout
#define stderr ocx_stderr
#define printf(...) fprintf(ocx_stdout, __VA_ARGS__)
#define vprintf(f, ap) vfprintf(ocx_stdout, f, ap)
#define puts(z) fprintf(ocx_stdout, "%s\n", z)
#undef putchar
#define putchar(c) fputc(c, ocx_stdout)
#undef getchar
#define getchar() fgetc(ocx_stdin)
#define perror ocx_perror

/* Memory */
#define malloc ocx_malloc
#define calloc ocx_calloc
#define realloc ocx_realloc
#define free ocx_free
#define strdup ocx_strdup
#define strndup ocx_strndup

/* Processes, signals and the state of the process */
#define fork ocx_fork
#define system ocx_system
#define popen ocx_popen
#define pclose ocx_pclose
#define wait ocx_wait
#define waitpid ocx_waitpid
#define execl ocx_execl
#define execv ocx_execv
#define execvp ocx_execvp
#define setsid ocx_setsid
#define kill ocx_kill
#define signal ocx_signal
#define sigaction(...) ocx_sigaction()
#define alarm ocx_alarm
#define nice(n) ocx_nice(n)
#define setrlimit(...) ocx_setrlimit(__VA_ARGS__)
#define setuid ocx_setuid
#define setgid ocx_setgid
#define chroot ocx_chroot
#define getenv ocx_getenv
#define setenv ocx_setenv
#define putenv ocx_putenv
#define getpass ocx_getpass
#define isatty ocx_isatty
#define localtime ocx_localtime
#define gmtime ocx_gmtime
#define setlocale(c, z) ocx_setlocale(c, z)

/* Handles, which a longjmp would leak */
#define open ocx_open
#define close ocx_close
#define fopen ocx_fopen
#define fdopen ocx_fdopen
#define freopen ocx_freopen
#define fclose ocx_fclose
#define opendir ocx_opendir
#define closedir ocx_closedir
#define socket ocx_socket
#define accept ocx_accept
#define pipe ocx_pipe
#define dup ocx_dup
#define dup2 ocx_dup2

/* SQLite: connections and statements are tracked; what is process-wide is refused */
#define sqlite3_open ocx_sqlite3_open
#define sqlite3_open_v2 ocx_sqlite3_open_v2
#define sqlite3_close ocx_sqlite3_close
#define sqlite3_close_v2 ocx_sqlite3_close
#define sqlite3_prepare ocx_sqlite3_prepare
#define sqlite3_prepare_v2 ocx_sqlite3_prepare_v2
#define sqlite3_prepare_v3 ocx_sqlite3_prepare_v3
#define sqlite3_finalize ocx_sqlite3_finalize
#define sqlite3_exec ocx_sqlite3_exec
#define sqlite3_busy_timeout ocx_sqlite3_busy_timeout
#define sqlite3_set_authorizer ocx_sqlite3_set_authorizer
#define sqlite3_commit_hook ocx_sqlite3_commit_hook
#define sqlite3_create_function ocx_sqlite3_create_function
#define sqlite3_create_module ocx_sqlite3_create_module
#define sqlite3_config(...) (ocx_plain ? sqlite3_config(__VA_ARGS__) : SQLITE_OK)
#define sqlite3_shutdown() (ocx_plain ? sqlite3_shutdown() : SQLITE_OK)
#define sqlite3_auto_extension(x) (ocx_plain ? sqlite3_auto_extension(x) : SQLITE_OK)

#endif
