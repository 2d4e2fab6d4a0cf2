/*
** Line editing, which Fossil refers to and this build leaves out.  A line is read plainly instead.
*/
#include "shim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *linenoise(const char *prompt) {
  char *line = 0;
  size_t used = 0;
  char part[512];
  fputs(prompt, stdout);
  fflush(stdout);
  while (fgets(part, sizeof part, stdin)) {
    size_t n = strlen(part);
    char *more = realloc(line, used + n + 1);
    if (more == 0) break;
    line = more;
    memcpy(line + used, part, n + 1);
    used += n;
    if (line[used - 1] == '\n') {
      line[used - 1] = 0;
      return line;
    }
  }
  return line;
}

void linenoiseSetMultiLine(int on) {
  (void)on;
}

int linenoiseHistoryAdd(const char *line) {
  (void)line;
  return 0;
}
