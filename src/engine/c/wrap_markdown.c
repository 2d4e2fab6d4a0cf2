/*
** markdown.c as it is, but the scans that may run to the end of the text spend what spend.h allows.
**
** These functions are static, so their definitions are told from their uses by the first token between the
** parentheses: a definition becomes fossil_..., a call goes to the function here, and a use without
** parentheses (the table of active characters) means that one too.
*/
#include "config.h"
#include <stddef.h>
#include "spend.h"

struct Blob;
struct render;
static size_t counted_emph_char(char*, size_t, char);
static void counted_codespan(const char*, size_t, size_t*);
static size_t char_codespan(struct Blob*, struct render*, char*, size_t, size_t);
static size_t char_footnote(struct Blob*, struct render*, char*, size_t, size_t);
static size_t char_link(struct Blob*, struct render*, char*, size_t, size_t);
static size_t char_langle_tag(struct Blob*, struct render*, char*, size_t, size_t);
static size_t counted_htmlblock(struct Blob*, struct render*, char*, size_t);

#define find_emph_char(a, ...)  EMPH_##a, __VA_ARGS__)
#define EMPH_char               fossil_find_emph_char(char
#define EMPH_data               counted_emph_char(data
#define skip_codespan(a, ...)   SKIP_##a, __VA_ARGS__)
#define SKIP_const              fossil_skip_codespan(const
#define SKIP_data               counted_codespan(data
#define parse_htmlblock(a, ...) HTML_##a, __VA_ARGS__)
#define HTML_struct             fossil_parse_htmlblock(struct
#define HTML_ob                 counted_htmlblock(ob
#define char_codespan(a, ...)   SPAN_##a, __VA_ARGS__)
#define SPAN_struct             fossil_char_codespan(struct
#define SPAN_ob                 char_codespan(ob
#define char_footnote(...)      fossil_char_footnote(__VA_ARGS__)
#define char_link(...)          fossil_char_link(__VA_ARGS__)
#define char_langle_tag(...)    fossil_char_langle_tag(__VA_ARGS__)
#define markdown(...)           fossil_markdown(__VA_ARGS__)
#include "markdown_.c"
#undef find_emph_char
#undef skip_codespan
#undef parse_htmlblock
#undef char_codespan
#undef char_footnote
#undef char_link
#undef char_langle_tag
#undef markdown

void markdown(struct Blob *ob, const struct Blob *ib, const struct mkd_renderer *rndrer){
  spend_begin(blob_size(ib));
  fossil_markdown(ob, ib, rndrer);
}

/* With a link in between, it may have looked further than to what it found. */
static size_t counted_emph_char(char *data, size_t size, char c){
  size_t n;
  if( spend_is_over() ) return 0;
  n = fossil_find_emph_char(data, size, c);
  /* A call that finds at once what it looks for costs something too. */
  spend(n==0 || memchr(data, '[', n)!=0 ? size : n+32);
  return n;
}

static void counted_codespan(const char *data, size_t size, size_t *pI){
  size_t i = *pI;
  if( spend_is_over() ){
    *pI = i+1;
    return;
  }
  fossil_skip_codespan(data, size, pI);
  spend(size-i);
}

/* The look of one active character at what follows it: as long as what it took, or all there is. */
#define COUNTED(NAME) \
  static size_t NAME(struct Blob *ob, struct render *rndr, char *data, size_t offset, size_t size){ \
    size_t n = spend_is_over() ? 0 : fossil_##NAME(ob, rndr, data, offset, size); \
    spend(n ? n : size); \
    return n; \
  }
COUNTED(char_codespan)
COUNTED(char_footnote)
COUNTED(char_link)
COUNTED(char_langle_tag)

static size_t counted_htmlblock(struct Blob *ob, struct render *rndr, char *data, size_t size){
  size_t n = spend_is_over() ? 0 : fossil_parse_htmlblock(ob, rndr, data, size);
  spend(n ? n : size);
  return n;
}
