/* What every function does before it enters Go. Not installed. */
#ifndef GORUN_ENTER_H
#define GORUN_ENTER_H

#include "_cgo_export.h"

int may_enter(void);                                 /* 0 in a forked child, with the error set */
int refuse(const char *op, const char *what);        /* sets and returns GORUN_ERR_ARGUMENT */

#define ENTER(call) (may_enter() ? (call) : GORUN_ERR_FORKED)
#define NEEDS(op, pointer) \
	if ((pointer) == NULL) \
		return refuse(op, #pointer " is NULL")

#endif
