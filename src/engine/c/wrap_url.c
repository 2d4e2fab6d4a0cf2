/*
** url.c as it is, but an IPv6 address stays one.  Fossil parses the canonical form of a URL again, where it takes the
** first colon of an address for the one before the port, and takes no address in brackets after a login.
*/
#define url_parse_local fossil_url_parse_local
#define url_parse fossil_url_parse
#include "url_.c"
#undef url_parse_local
#undef url_parse

/* The address with each colon as %3A, which url.c reads in every place. */
static char *ocx_address(const char *z, int n){
  char *zOut = mprintf("");
  while( n>0 ){
    int k = 0;
    while( k<n && z[k]!=':' ) k++;
    zOut = mprintf("%z%.*s%s", zOut, k, z, k<n ? "%3A" : "");
    z += k+1;
    n -= k+1;
  }
  return zOut;
}

/* The URL without the brackets of an address, or NULL if it has none. */
static char *ocx_without_brackets(const char *zUrl){
  const char *zHost, *zEnd, *zClose;
  if( zUrl==0 || strncmp(zUrl, "http", 4)!=0 || (zHost = strstr(zUrl, "://"))==0 ) return 0;
  zHost += 3;
  zEnd = zHost + strcspn(zHost, "/");
  for(zClose=zEnd; zClose>zHost && zClose[-1]!='@'; zClose--){}
  zHost = zClose;
  zClose = memchr(zHost, ']', zEnd-zHost);
  if( *zHost!='[' || zClose==0 ) return 0;
  return mprintf("%.*s%s%s", (int)(zHost-zUrl), zUrl, ocx_address(zHost+1, (int)(zClose-zHost-1)), zClose+1);
}

void url_parse_local(const char *zUrl, unsigned int urlFlags, UrlData *p){
  char *zPlain = ocx_without_brackets(zUrl);
  char *zName;
  fossil_url_parse_local(zPlain ? zPlain : zUrl, urlFlags, p);
  if( p->isFile || p->isSsh || p->name==0 || strchr(p->name, ':')==0 || p->canonical==0 ) return;
  zName = strstr(p->canonical, p->name);
  if( zName==0 ) return;
  p->canonical = mprintf("%.*s%s%s", (int)(zName-p->canonical), p->canonical,
                         ocx_address(p->name, (int)strlen(p->name)), zName+strlen(p->name));
  if( p->port==p->dfltPort ){
    p->hostname = mprintf("[%s]", p->name);
  }else{
    p->hostname = mprintf("[%s]:%d", p->name, p->port);
  }
}

void url_parse(const char *zUrl, unsigned int urlFlags){
  url_parse_local(zUrl, urlFlags, &g.url);
}
