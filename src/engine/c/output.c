/*
** The standard streams of Fossil's code: output goes to memory, input is empty.
*/
#include <stdlib.h>
#include <string.h>
#include "session.h"

#define MAX_OUTPUT ((size_t)256<<20)
FILE *ocx_stdin, *ocx_stdout, *ocx_stderr;
Output ocx_outputs[2];

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
void ocx_outputs_reset(void){
  output_reset(&ocx_outputs[0]);
  output_reset(&ocx_outputs[1]);
}
int ocx_streams_open(void){
  cookie_io_functions_t write_only = {0}, read_only = {0};
  write_only.write = output_write;
  read_only.read = input_read;
  ocx_stdin = fopencookie(0, "r", read_only);
  ocx_stdout = fopencookie(&ocx_outputs[0], "w", write_only);
  ocx_stderr = fopencookie(&ocx_outputs[1], "w", write_only);
  return ocx_stdin && ocx_stdout && ocx_stderr;
}
