/* What every function does before it enters Go. Not installed. */
#ifndef GORUN_ENTER_H
#define GORUN_ENTER_H

#include "_cgo_export.h"

int may_enter(void);                                 /* 0 in a forked child, with the error set */
int refuse(const char *op, const char *what);        /* sets and returns GORUN_ERR_ARGUMENT */

#endif
