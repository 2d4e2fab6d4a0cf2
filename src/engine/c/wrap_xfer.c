/*
** xfer.c as it is, but a library's sync records no URL and no file name by itself.
*/
#define url_parse_local ocx_url_parse_unless_library
#define db_record_repository_filename ocx_record_filename_unless_library
#include "xfer_.c"
#undef url_parse_local
#undef db_record_repository_filename

void url_parse_local(const char*, unsigned int, UrlData*);
void db_record_repository_filename(const char*);

void ocx_url_parse_unless_library(const char *zUrl, unsigned int flags, UrlData *pUrl){
  if( ocx_plain ) url_parse_local(zUrl, flags, pUrl);
}
void ocx_record_filename_unless_library(const char *zName){
  if( ocx_plain ) db_record_repository_filename(zName);
}
