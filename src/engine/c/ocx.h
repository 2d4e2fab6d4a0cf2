/* What Rust calls: the whole C surface of the engine. */
#ifndef OCX_H
#define OCX_H
/* The number of the SQLite that Fossil's code is linked with. */
int ocx_sqlite_version(void);
#endif
