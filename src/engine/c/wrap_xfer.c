/*
** xfer.c as it is, but a library's sync records no URL and no file name by itself, and what
** arrives compressed is looked into before it is stored: Fossil stores what does not inflate,
** and for a size the number of compressed bytes, which only a rebuild puts right.
*/
#define url_parse_local ocx_url_parse_unless_library
#define db_record_repository_filename ocx_record_filename_unless_library
#define content_put_ex ocx_content_put_checked
#include "xfer_.c"
#undef url_parse_local
#undef db_record_repository_filename
#undef content_put_ex

void url_parse_local(const char*, unsigned int, UrlData*);
void db_record_repository_filename(const char*);
int content_put_ex(Blob*, const char*, int, int, int);
int delta_output_size(const char*, int);
int ocx_claimed_size(Blob*);
int hname_verify_hash(Blob*, const char*, int);

void ocx_url_parse_unless_library(const char *zUrl, unsigned int flags, UrlData *pUrl){
  if( ocx_plain ) url_parse_local(zUrl, flags, pUrl);
}
void ocx_record_filename_unless_library(const char *zName){
  if( ocx_plain ) db_record_repository_filename(zName);
}

/* The size of the artifact that compressed content expands to, whole or as a delta; -1 if it is not of that name. */
static int ocx_artifact_size(Blob *pContent, const char *zHash, int isDelta){
  int size;
  if( isDelta ) return delta_output_size(blob_buffer(pContent), blob_size(pContent));
  size = (int)blob_size(pContent);
  return hname_verify_hash(pContent, zHash, (int)strlen(zHash)) ? size : -1;
}

int ocx_content_put_checked(Blob *pBlob, const char *zHash, int srcid, int nBlob, int isPrivate){
  Blob content;
  int size = -1, rid;
  if( nBlob==0 || ocx_plain ) return content_put_ex(pBlob, zHash, srcid, nBlob, isPrivate);
  /* All of a clone is looked into at once when it is in (see ocx_clone), and its rebuild sets the sizes of deltas. */
  if( g.xlinkClusterOnly && (size = ocx_claimed_size(pBlob))>0 ){
    return content_put_ex(pBlob, zHash, srcid, srcid ? nBlob : size, isPrivate);
  }
  blob_zero(&content);
  if( blob_size(pBlob)>4 && blob_uncompress(pBlob, &content)==0 ){
    size = ocx_artifact_size(&content, zHash, srcid!=0);
  }
  if( size<0 ) fossil_fatal("artifact %s does not arrive as the server says", zHash);
  /* A size of zero would say that the content is not compressed. */
  rid = size>0 ? content_put_ex(pBlob, zHash, srcid, size, isPrivate)
               : content_put_ex(&content, zHash, srcid, 0, isPrivate);
  blob_reset(&content);
  return rid;
}
