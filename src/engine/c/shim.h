#ifndef OCX_SHIM_H
#define OCX_SHIM_H
/* Stands before each file of Fossil's. */
#endif
