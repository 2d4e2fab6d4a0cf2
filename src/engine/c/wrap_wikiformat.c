/*
** wikiformat.c as it is, but each token spends of what spend.h allows: a bracket or a tag that nothing closes
** the rest of the text, other markup the depth of the stack that it may search.  The definitions of its static
** functions are told from their uses as in wrap_markdown.c.
*/
#include "config.h"
#include <string.h>
#include "spend.h"

struct Renderer;
static int counted_wiki_token(const char*, struct Renderer*, int*);
static int counted_raw_token(const char*, struct Renderer*, int*);

#define nextWikiToken(a, ...)     WIKI_TOKEN_##a, __VA_ARGS__)
#define WIKI_TOKEN_const          fossil_nextWikiToken(const
#define WIKI_TOKEN_z              counted_wiki_token(z
#define nextRawToken(a, ...)      RAW_TOKEN_##a, __VA_ARGS__)
#define RAW_TOKEN_const           fossil_nextRawToken(const
#define RAW_TOKEN_z               counted_raw_token(z
/* The first thing that is done to a text before it is rendered. */
#define blob_to_utf8_no_bom       ocx_text_begins
#define wiki_extract_links(...)   fossil_wiki_extract_links(__VA_ARGS__)
#include "wikiformat_.c"
#undef nextWikiToken
#undef nextRawToken
#undef blob_to_utf8_no_bom
#undef wiki_extract_links

void blob_to_utf8_no_bom(Blob*, int);

void ocx_text_begins(Blob *p, int useMbcs){
  blob_to_utf8_no_bom(p, useMbcs);
  spend_begin(blob_size(p));
}

int wiki_extract_links(char *z, Backlink *pBklnk, int flags){
  spend_begin(strlen(z));
  return fossil_wiki_extract_links(z, pBklnk, flags);
}

/* Is z the begin of something that is looked for to the end of the text? */
static int opens(const char *z){
  return z[0]=='[' || (z[0]=='<' && (fossil_isalpha(z[1]) || z[1]=='/'));
}

/* The next token where no mark is looked for any more: as if this one had no end. */
static int plain_token(const char *z, struct Renderer *p, int typeOfText, int *pTokenType){
  if( typeOfText==TOKEN_TEXT && (z[0]=='<' || z[0]=='&') ){
    *pTokenType = TOKEN_CHARACTER;
    return 1;
  }
  *pTokenType = typeOfText;
  return 1 + textLength(z+1, p->state);
}

static int counted_wiki_token(const char *z, struct Renderer *p, int *pTokenType){
  int n, isText;
  if( spend_is_over() ) return plain_token(z, p, TOKEN_TEXT, pTokenType);
  n = fossil_nextWikiToken(z, p, pTokenType);
  isText = *pTokenType==TOKEN_TEXT || *pTokenType==TOKEN_CHARACTER;
  if( !isText ) spend(p->nStack);
  spend(isText && opens(z) ? strlen(z) : (size_t)n);
  return n;
}

static int counted_raw_token(const char *z, struct Renderer *p, int *pTokenType){
  int n;
  if( spend_is_over() ) return plain_token(z, p, TOKEN_RAW, pTokenType);
  n = fossil_nextRawToken(z, p, pTokenType);
  spend(z[0]=='[' && *pTokenType!=TOKEN_LINK ? strlen(z) : (size_t)n);
  return n;
}
