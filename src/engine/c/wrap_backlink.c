/*
** backlink.c as it is, but its SQL is kept: links are taken from the comment of each check-in.
*/
#include "bound.h"
#include "backlink_.c"
