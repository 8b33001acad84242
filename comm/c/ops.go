package main

/*
#include "call.h"

static inline int call_op(gorun_op_function f, void *context, void *acc, const void *in, size_t count, gorun_type type)
{
	return f(context, acc, in, count, type);
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/gorun/gorun/comm"
)

// ops are the reductions, in the order of gorun_op.
var ops = [...]comm.Op{
	comm.Sum, comm.Prod, comm.Min, comm.Max, comm.BitAnd, comm.BitOr, comm.BitXor, comm.LogicalAnd, comm.LogicalOr,
	comm.LogicalXor, comm.MinLoc, comm.MaxLoc, comm.Avg,
}

// An ownOp is a reduction whose function the caller has.
type ownOp struct {
	function    C.gorun_op_function
	context     unsafe.Pointer
	name        string
	block       int
	commutative bool
}

var ownOps handles[*ownOp] // by gorun_op, from GORUN_OP_OWN on

//export goOpCreate
func goOpCreate(function C.gorun_op_function, context unsafe.Pointer, name *C.char, block C.size_t, commutative C.int,
	op *C.gorun_op) (code C.int) {
	defer checked("Op", &code)()
	*op = 0
	o := &ownOp{function, context, C.GoString(name), int(block), commutative != 0}
	*op = C.gorun_op(C.GORUN_OP_OWN + ownOps.add(o))
	return C.GORUN_SUCCESS
}

//export goOpFree
func goOpFree(op C.gorun_op) C.int {
	if _, ok := ownOps.remove(uint64(op) - C.GORUN_OP_OWN); !ok {
		return fail(refuse("Op", "%d is no reduction of gorun_op_create, or one that has been freed", uint64(op)))
	}
	return C.GORUN_SUCCESS
}

// opOf returns the reduction of c, if it has one.
func opOf[T comm.Element](c *C.struct_call) (comm.Op, error) {
	switch {
	case c.op == 0:
		return nil, nil
	case c.op > 0 && int(c.op) <= len(ops):
		return ops[c.op-1], nil
	}
	own, ok := ownOps.get(uint64(c.op) - C.GORUN_OP_OWN)
	if !ok {
		return nil, refuse(names[c.kind], "there is no reduction %d", int(c.op))
	}
	typ := C.gorun_type(c._type)
	return comm.NewBlockOp(own.name, own.block, own.commutative, func(acc, in []T) {
		code := C.call_op(own.function, own.context, unsafe.Pointer(&acc[0]), unsafe.Pointer(&in[0]), C.size_t(len(acc)), typ)
		if code != 0 {
			panic(&functionError{what: fmt.Sprintf("reduction %q", own.name), code: int(code)})
		}
	}), nil
}

// A functionError says that a function of the caller's has failed.
type functionError struct {
	what string
	code int
}

func (e *functionError) Error() string {
	return fmt.Sprintf("the function of %s has returned %d", e.what, e.code)
}

// caught sets err if a function of the caller's has ended the call. The group has failed.
func caught(err *error) {
	switch v := recover().(type) {
	case nil:
	case *functionError:
		*err = v
	default:
		panic(v)
	}
}
