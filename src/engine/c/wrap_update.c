/*
** update.c as it is, but in library mode the setting empty-dirs makes folders in the tree only.  A file of the tree
** may hold that setting, so whoever checks in could else have folders made anywhere.
*/
#define file_mkfolder ocx_update_mkfolder
#include "update_.c"
#undef file_mkfolder

int file_mkfolder(const char*, int, int, int);

/* True if a part of the path below the root is "..", or is there and is no folder of its own. */
static int ocx_leads_out(const char *zPath){
  struct stat s;
  size_t nRoot = strlen(g.zLocalRoot);
  char *z, *p;
  int out = 0;
  if( strncmp(zPath, g.zLocalRoot, nRoot)!=0 ) return 1;
  z = mprintf("%s", zPath);
  for(p=z+nRoot; !out && *p; ){
    char *pEnd = p + strcspn(p, "/");
    char c = *pEnd;
    *pEnd = 0;
    out = strcmp(p, "..")==0 || (c && *p && lstat(z, &s)==0 && S_ISLNK(s.st_mode));
    *pEnd = c;
    p = c ? pEnd+1 : pEnd;
  }
  fossil_free(z);
  return out;
}

int ocx_update_mkfolder(const char *zPath, int eFType, int forceFlag, int errorReturn){
  if( !ocx_plain && ocx_leads_out(zPath) ){
    fossil_fatal("the setting empty-dirs names a folder that is not in the tree: %s", zPath);
  }
  return file_mkfolder(zPath, eFType, forceFlag, errorReturn);
}
