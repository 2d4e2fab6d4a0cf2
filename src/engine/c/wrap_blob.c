/*
** blob.c as it is, but what a compressed blob says of its own size is checked before
** memory is taken for it.  On a breach Fossil stops: its callers do not look at the
** result and would go on with wrong content.
*/
#define blob_uncompress fossil_blob_uncompress
#include "blob_.c"
#undef blob_uncompress

int blob_uncompress(Blob *pIn, Blob *pOut){
  const unsigned char *z = (const unsigned char*)blob_buffer(pIn);
  unsigned int n = blob_size(pIn);
  unsigned long claimed;
  if( n>4 ){
    claimed = ((unsigned long)z[0]<<24) | ((unsigned long)z[1]<<16) | (z[2]<<8) | z[3];
    /* zlib cannot expand by more than about 1032 to 1. */
    if( claimed>OCX_MAX_EXPANDED || claimed/1100>n ){
      fossil_fatal("compressed data of %u bytes claims to expand to %lu", n, claimed);
    }
  }
  return fossil_blob_uncompress(pIn, pOut);
}
