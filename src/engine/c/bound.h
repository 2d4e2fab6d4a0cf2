/*
** Stands before a source of Fossil's whose SQL is to be bound and kept; see mod_bound.c.
*/
#define db_prepare ocx_bound_prepare
#define db_finalize ocx_bound_finalize
#define db_multi_exec ocx_bound_multi_exec
#define db_exists ocx_bound_exists
#define db_int ocx_bound_int
#define db_double ocx_bound_double
#define db_text ocx_bound_text
