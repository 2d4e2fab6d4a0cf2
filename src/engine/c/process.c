/*
** The process: a library starts no process and changes nothing that all share. Plain Fossil may do both.
*/
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "session.h"

int ocx_plain;

int fossil_main(int, char**);

/*
** The path of this program. Fossil would seek it by the name it was called by.
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

int ocx_refused(void){ errno = ENOSYS; return -1; }

/*
** Plain Fossil starts itself by the path of its program, which is this program's
** and needs the word "fossil" before the command.  Returns a copy of the command line
** with that word put in, or NULL if the program is not named in it.
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

pid_t ocx_fork(void){ return ocx_plain ? fork() : ocx_refused(); }
int ocx_system(const char *z){
  char *line;
  int rc;
  if( !ocx_plain ) return ocx_refused();
  line = own_command(z);
  rc = system(line ? line : z);
  free(line);
  return rc;
}
FILE *ocx_popen(const char *z, const char *mode){
  char *line;
  FILE *f;
  if( !ocx_plain ){
    ocx_refused();
    return 0;
  }
  line = own_command(z);
  f = popen(line ? line : z, mode);
  free(line);
  return f;
}
int ocx_pclose(FILE *f){ return ocx_plain ? pclose(f) : ocx_refused(); }
pid_t ocx_wait(int *status){ return ocx_plain ? wait(status) : ocx_refused(); }
pid_t ocx_waitpid(pid_t pid, int *status, int flags){
  return ocx_plain ? waitpid(pid, status, flags) : ocx_refused();
}
int ocx_execl(const char *path, const char *arg0, ...){
  const char *args[64];
  size_t n = 0;
  va_list ap;
  if( !ocx_plain ) return ocx_refused();
  va_start(ap, arg0);
  for(const char *a=arg0; a && n+1<sizeof(args)/sizeof(args[0]); a=va_arg(ap, const char*)){
    char *line = own_command(a);    /* the process becomes another: no one frees it */
    args[n++] = line ? line : a;
  }
  va_end(ap);
  args[n] = 0;
  return execv(path, (char *const*)args);
}
int ocx_execv(const char *path, char *const *argv){ return ocx_plain ? execv(path, argv) : ocx_refused(); }
int ocx_execvp(const char *file, char *const *argv){ return ocx_plain ? execvp(file, argv) : ocx_refused(); }
pid_t ocx_setsid(void){ return ocx_plain ? setsid() : ocx_refused(); }
int ocx_kill(pid_t pid, int sig){ return ocx_plain || sig==0 ? kill(pid, sig) : ocx_refused(); }
void (*ocx_signal(int sig, void (*f)(int)))(int){ return ocx_plain ? signal(sig, f) : SIG_DFL; }
int ocx_sigaction(void){ return 0; }
unsigned ocx_alarm(unsigned s){ return ocx_plain ? alarm(s) : 0; }
int ocx_nice(int n){ return ocx_plain ? nice(n) : 0; }
int ocx_setrlimit(int what, const struct rlimit *r){ return ocx_plain ? setrlimit(what, r) : 0; }
int ocx_setuid(uid_t u){ return ocx_plain ? setuid(u) : 0; }
int ocx_setgid(gid_t g){ return ocx_plain ? setgid(g) : 0; }
int ocx_chroot(const char *z){ return ocx_plain ? chroot(z) : ocx_refused(); }
char *ocx_getenv(const char *z){ return ocx_plain ? getenv(z) : 0; }
int ocx_setenv(const char *k, const char *v, int over){ return ocx_plain ? setenv(k, v, over) : 0; }
int ocx_putenv(char *z){ return ocx_plain ? putenv(z) : 0; }
int ocx_isatty(int fd){ return ocx_plain ? isatty(fd) : 0; }
struct tm *ocx_gmtime(const time_t *t){
  static struct tm tm;
  return ocx_plain ? gmtime(t) : gmtime_r(t, &tm);
}
struct tm *ocx_localtime(const time_t *t){ return ocx_plain ? localtime(t) : ocx_gmtime(t); }
char *ocx_setlocale(int c, const char *z){ return ocx_plain ? setlocale(c, z) : "C"; }
