/*
** The work that Fossil's markup may cost, for wrap_markdown.c and wrap_wikiformat.c.
**
** Their scans look ahead to the end of a text for what closes a mark.  Where nothing does, each mark costs the
** rest of the text: 100 KB of marks took 11 seconds, 1 MB 20 minutes.  So each scan spends the bytes that it has
** looked at.  When a text has spent all that it may, no further mark in it is looked for, and what is left is
** plain text.  Nothing that people write comes near that.
*/
static sqlite3_int64 nToSpend = 0;

/* A text of nText bytes begins: some tenths of a second, and more for a long one. */
static void spend_begin(size_t nText){
  nToSpend = (1<<26) + 64*(sqlite3_int64)nText;
}
static int spend_is_over(void){
  return nToSpend<=0;
}
static void spend(size_t n){
  nToSpend -= (sqlite3_int64)n;
}
