/*
** tag.c as it is, but its SQL is kept: tags are propagated for each check-in that is linked in.
*/
#include "bound.h"
#include "tag_.c"
