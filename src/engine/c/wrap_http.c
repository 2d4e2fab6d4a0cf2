/*
** http.c as it is, but a library's round trip goes to Rust.  C opens no socket, and no
** transaction stays open during the wait for the network.
*/
#define http_exchange fossil_http_exchange
#include "http_.c"
#undef http_exchange

/* http.c does not use these, so its generated header does not declare them. */
int db_transaction_nesting_depth(void);
void db_begin_transaction_real(const char*, int);
void db_end_transaction(int);
void fossil_secure_zero(void*, size_t);

int http_exchange(Blob *pSend, Blob *pReply, int flags, int maxRedirect, const char *zAltMimetype){
  Blob login;
  char *zReply;
  size_t nReply;
  int depth = db_transaction_nesting_depth();
  int i, rc;
  if( ocx_plain ) return fossil_http_exchange(pSend, pReply, flags, maxRedirect, zAltMimetype);
  blob_zero(&login);
  if( (flags & HTTP_USE_LOGIN) && ocx_sync_user() && ocx_sync_password() ){
    g.url.user = fossil_strdup(ocx_sync_user());
    g.url.passwd = fossil_strdup(ocx_sync_password());
    http_build_login_card(pSend, &login);
    fossil_secure_zero(g.url.passwd, strlen(g.url.passwd));
    fossil_free(g.url.passwd);
    g.url.passwd = 0;
    g.url.user = 0;
  }
  for(i=0; i<depth; i++) db_end_transaction(0);
  rc = ocx_exchange(blob_buffer(&login), blob_size(&login),
                    blob_buffer(pSend), blob_size(pSend), &zReply, &nReply);
  for(i=0; i<depth; i++) db_begin_transaction_real(__FILE__, __LINE__);
  blob_reset(&login);
  if( rc ) return 1;
  blob_zero(pReply);
  blob_append(pReply, zReply, (int)nReply);
  free(zReply);
  return 0;
}
