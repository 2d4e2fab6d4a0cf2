/*
** Compression with zlib's tables kept from one text to the next.
*/
#include <limits.h>
#include <zlib.h>
#include "host.h"

int ocx_compress2(unsigned char *to, unsigned long *nTo, const unsigned char *from, unsigned long nFrom, int level){
  static struct { z_stream z; int ready; } streams[2];  /* zlib never leaves, so a call that ends finds them whole */
  int which = level==Z_BEST_SPEED;
  z_stream *z = &streams[which].z;
  if( (!which && level!=Z_DEFAULT_COMPRESSION) || nFrom>UINT_MAX || *nTo>UINT_MAX
   || (!streams[which].ready && deflateInit(z, level)!=Z_OK)
  ){
    return compress2(to, nTo, from, nFrom, level);
  }
  streams[which].ready = 1;
  deflateReset(z);
  z->next_in = (unsigned char*)from;
  z->avail_in = (unsigned)nFrom;
  z->next_out = to;
  z->avail_out = (unsigned)*nTo;
  if( deflate(z, Z_FINISH)!=Z_STREAM_END ) return Z_BUF_ERROR;
  *nTo = z->total_out;
  return Z_OK;
}
int ocx_compress(unsigned char *to, unsigned long *nTo, const unsigned char *from, unsigned long nFrom){
  return ocx_compress2(to, nTo, from, nFrom, Z_DEFAULT_COMPRESSION);
}
