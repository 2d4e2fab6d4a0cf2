/*
** deltacmd.c as it is, but the target is a valid blob after a failure too: callers use
** it without looking at the result.
*/
#define blob_delta_apply fossil_blob_delta_apply
#include "deltacmd_.c"
#undef blob_delta_apply

int blob_delta_apply(Blob *pOriginal, Blob *pDelta, Blob *pTarget){
  if( pTarget!=pOriginal ) blob_zero(pTarget);
  return fossil_blob_delta_apply(pOriginal, pDelta, pTarget);
}
