/*
** blob.c as it is, but the size that a compressed blob claims is checked before memory is
** taken for it.  On a breach Fossil stops: its callers do not look at the result and would
** go on with wrong content.  A request's body is read as it comes, whatever length its
** header claims.  The compressor is kept from one text to the next.
*/
#define blob_uncompress fossil_blob_uncompress
#define blob_read_from_cgi fossil_blob_read_from_cgi
#define compress ocx_compress
#include "blob_.c"
#undef compress
#undef blob_uncompress
#undef blob_read_from_cgi

/* Memory is taken for at most this much more than has come, in bytes. */
#define READ_AHEAD (1<<20)

/* The size that compressed data claims to expand to, which is not absurd; 0 if the data is not compressed. */
int ocx_claimed_size(Blob *p){
  const unsigned char *z = (const unsigned char*)blob_buffer(p);
  unsigned int n = blob_size(p);
  unsigned long claimed;
  if( n<=4 ) return 0;
  claimed = ((unsigned long)z[0]<<24) | ((unsigned long)z[1]<<16) | (z[2]<<8) | z[3];
  /* zlib cannot expand by more than about 1032 to 1. */
  if( claimed>OCX_MAX_EXPANDED || claimed/1100>n ){
    fossil_fatal("compressed data of %u bytes claims to expand to %lu", n, claimed);
  }
  return (int)claimed;
}

int blob_uncompress(Blob *pIn, Blob *pOut){
  unsigned int n = blob_size(pIn);
  int rc;
  ocx_claimed_size(pIn);
  if( pOut!=pIn ) blob_zero(pOut);
  rc = fossil_blob_uncompress(pIn, pOut);
  /* Content that stays as it was may still point into a row that its caller now leaves. */
  if( pOut==pIn && (rc || n<=4) ) blob_materialize(pIn);
  return rc;
}

int blob_read_from_cgi(Blob *pBlob, int nToRead){
  if( nToRead<=READ_AHEAD ) return fossil_blob_read_from_cgi(pBlob, nToRead);
  blob_zero(pBlob);
  while( nToRead>0 ){
    Blob part;
    int nWanted = nToRead<READ_AHEAD ? nToRead : READ_AHEAD;
    int n = fossil_blob_read_from_cgi(&part, nWanted);
    blob_append(pBlob, blob_buffer(&part), n);
    blob_reset(&part);
    nToRead -= n;
    if( n<nWanted ) break;
  }
  return blob_size(pBlob);
}
