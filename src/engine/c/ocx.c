#include "ocx.h"
#include <sqlite3.h>
int fossil_main(int argc, char **argv);
int (*ocx_keep)(int, char **) = fossil_main;
int ocx_sqlite_version(void) {
  return sqlite3_libversion_number();
}
