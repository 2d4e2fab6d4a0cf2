/*
** leaf.c as it is, but its SQL is kept: the leaves are looked at for each check-in.
*/
#include "bound.h"
#include "leaf_.c"
