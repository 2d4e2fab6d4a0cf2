/*
** Files, folders and descriptors: a session knows those that its code opened.
*/
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>
#include "session.h"

void *ocx_fd_item(int fd){ return (void*)(size_t)(fd+1); }
int ocx_item_fd(void *p){ return (int)(size_t)p - 1; }

static int fd_add(int fd){
  if( fd>=0 && ocx_current ) ocx_handle_add(&ocx_current->descriptors, ocx_fd_item(fd));
  return fd;
}
static FILE *file_add(FILE *f){
  if( f && ocx_current ) ocx_handle_add(&ocx_current->files, f);
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
  if( ocx_current && !ocx_handle_drop(&ocx_current->descriptors, ocx_fd_item(fd)) ) return ocx_refused();
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
  if( f && ocx_current ) ocx_handle_drop(&ocx_current->descriptors, ocx_fd_item(fd));
  return file_add(f);
}
FILE *ocx_freopen(const char *path, const char *mode, FILE *f){
  if( ocx_plain ) return freopen(path, mode, f);
  ocx_refused();
  return 0;
}
int ocx_fclose(FILE *f){
  if( ocx_current && !ocx_handle_drop(&ocx_current->files, f) ) return ocx_refused();
  return fclose(f);
}
DIR *ocx_opendir(const char *path){
  DIR *d = opendir(path);
  if( d && ocx_current ) ocx_handle_add(&ocx_current->directories, d);
  return d;
}
int ocx_closedir(DIR *d){
  if( ocx_current ) ocx_handle_drop(&ocx_current->directories, d);
  return closedir(d);
}
int ocx_socket(int domain, int type, int protocol){
  return ocx_plain ? socket(domain, type, protocol) : ocx_refused();
}
int ocx_accept(int fd, struct sockaddr *a, socklen_t *n){ return ocx_plain ? accept(fd, a, n) : ocx_refused(); }
int ocx_pipe(int fds[2]){ return ocx_plain ? pipe(fds) : ocx_refused(); }
int ocx_dup(int fd){ return ocx_plain ? dup(fd) : ocx_refused(); }
int ocx_dup2(int from, int to){ return ocx_plain ? dup2(from, to) : ocx_refused(); }
