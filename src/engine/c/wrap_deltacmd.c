/*
** deltacmd.c as it is, but a delta's claim of its output size is checked before memory
** is taken for it: the output is at most what its commands can write.
*/
#define blob_delta_apply fossil_blob_delta_apply
#include "deltacmd_.c"
#undef blob_delta_apply

int blob_delta_apply(Blob *pOriginal, Blob *pDelta, Blob *pTarget){
  int claimed = delta_output_size(blob_buffer(pDelta), blob_size(pDelta));
  int nCopy = 0, nInsert = 0;
  if( claimed<0 || (unsigned)claimed>OCX_MAX_EXPANDED ) return -1;
  if( claimed>(1<<20)
   && (delta_analyze(blob_buffer(pDelta), blob_size(pDelta), &nCopy, &nInsert)<0
       || (long long)nCopy + nInsert != claimed) ){
    return -1;
  }
  return fossil_blob_delta_apply(pOriginal, pDelta, pTarget);
}
