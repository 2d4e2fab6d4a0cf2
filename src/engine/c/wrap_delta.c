/*
** delta.c as it is, but a delta is read only to its end, whatever lies behind it.  Its claim of
** its output size is checked before memory is taken: the output is as large as what its
** commands write.
*/
#define delta_output_size fossil_delta_output_size
#define delta_apply fossil_delta_apply
#include "delta_.c"
#undef delta_output_size
#undef delta_apply

/* Claims up to this many bytes are believed. */
#define SMALL_OUTPUT (1<<20)

/* A copy that ends with a NUL, as delta.c wants it; NULL if there is no delta or no memory. */
static char *ocx_terminated(const char *zDelta, int lenDelta){
  char *z;
  if( zDelta==0 || lenDelta<=0 ) return 0;
  z = malloc((size_t)lenDelta+1);
  if( z==0 ) return 0;
  memcpy(z, zDelta, lenDelta);
  z[lenDelta] = 0;
  return z;
}

int delta_output_size(const char *zDelta, int lenDelta){
  char zHead[16];
  char *z;
  int claimed, nCopy = 0, nInsert = 0;
  int n = lenDelta<(int)sizeof(zHead) ? lenDelta : (int)sizeof(zHead)-1;
  if( zDelta==0 || lenDelta<=0 ) return -1;
  memcpy(zHead, zDelta, n);
  zHead[n] = 0;
  claimed = fossil_delta_output_size(zHead, n);
  if( claimed<0 || (unsigned)claimed>OCX_MAX_EXPANDED ) return -1;
  if( claimed<=SMALL_OUTPUT ) return claimed;
  z = ocx_terminated(zDelta, lenDelta);
  if( z==0 ) return -1;
  if( delta_analyze(z, lenDelta, &nCopy, &nInsert)<0 || (long long)nCopy + nInsert!=claimed ) claimed = -1;
  free(z);
  return claimed;
}

int delta_apply(const char *zSrc, int lenSrc, const char *zDelta, int lenDelta, char *zOut){
  char *z = ocx_terminated(zDelta, lenDelta);
  int rc;
  if( z==0 ) return -1;
  rc = fossil_delta_apply(zSrc, lenSrc, z, lenDelta, zOut);
  free(z);
  return rc;
}
