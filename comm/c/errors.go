package main

// #include "call.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/gorun/gorun/comm"
)

// last is the last error that any thread has got.
var last atomic.Pointer[error]

// fail makes err the last error of the calling thread, and returns its code. It returns 0 if err is nil.
func fail(err error) C.int {
	if err == nil {
		return C.GORUN_SUCCESS
	}
	e := C.last_error()
	*e = C.gorun_error{code: code(err), rank: -1}
	last.Store(&err)
	copyText(e.text[:], err.Error())
	if at, ok := errors.AsType[interface {
		error
		FailedRank() int
	}](err); ok {
		e.rank = C.int(at.FailedRank())
	}
	op, seq := place(err)
	copyText(e.op[:], op)
	e.seq = C.uint64_t(seq)
	if function, ok := errors.AsType[*functionError](err); ok {
		e.exit_code = C.int(function.code)
	}
	if death := deathOf(err); death != nil && death.ExitCode != 0 {
		e.has_died = 1
		if death.ExitCode < 0 {
			e.signal = C.int(-death.ExitCode)
		} else {
			e.exit_code = C.int(death.ExitCode)
		}
	}
	return e.code
}

// checked is what a function defers that uses pointers of C. If one of them is not to memory of this process, the function's code is that
// of an error.
func checked(op string, result *C.int) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		switch v := recover().(type) {
		case nil:
		case runtime.Error:
			if !strings.Contains(v.Error(), "invalid memory address") {
				panic(v)
			}
			*result = fail(refuse(op, "a pointer is not to memory of this process, or to memory that is read-only"))
		default:
			panic(v)
		}
	}
}

// copyText copies as much of s as there is room for, and a zero byte.
func copyText(to []C.char, s string) {
	room := unsafe.Slice((*byte)(unsafe.Pointer(&to[0])), len(to))
	room[copy(room[:len(room)-1], s)] = 0
}

// code returns the code of err.
func code(err error) C.int {
	var (
		argument *comm.ArgumentError
		peer     *comm.PeerError
		abort    *comm.AbortError
		missing  *comm.MissingRanksError
		mismatch *comm.MismatchError
		deadlock *comm.DeadlockError
		truncate *comm.TruncateError
		noRejoin *comm.NoRejoinError
		keys     *comm.MissingKeysError
		function *functionError
	)
	switch {
	case errors.Is(err, errInterrupted):
		return C.GORUN_ERR_INTERRUPTED
	case errors.As(err, &noRejoin):
		return C.GORUN_ERR_NO_REJOIN
	case errors.As(err, &argument):
		return C.GORUN_ERR_ARGUMENT
	case errors.As(err, &missing):
		return C.GORUN_ERR_MISSING_RANKS
	case errors.As(err, &peer):
		return C.GORUN_ERR_PEER
	case errors.As(err, &abort):
		return C.GORUN_ERR_ABORTED
	case errors.As(err, &function):
		return C.GORUN_ERR_FUNCTION
	case errors.As(err, &mismatch):
		return C.GORUN_ERR_MISMATCH
	case errors.As(err, &deadlock):
		return C.GORUN_ERR_DEADLOCK
	case errors.As(err, &truncate):
		return C.GORUN_ERR_TRUNCATED
	case errors.As(err, &keys):
		return C.GORUN_ERR_MISSING_KEYS
	case errors.Is(err, comm.ErrRoundOver):
		return C.GORUN_ERR_ROUND_OVER
	case errors.Is(err, comm.ErrClosed), errors.Is(err, comm.ErrStoreClosed):
		return C.GORUN_ERR_CLOSED
	default:
		return C.GORUN_ERR_OTHER
	}
}

var errInterrupted = errors.New("interrupted")

// place returns which call has failed.
func place(err error) (op string, seq uint64) {
	switch e := err.(type) {
	case *comm.ArgumentError:
		return e.Op, 0
	case *comm.PeerError:
		return e.Op, e.Seq
	case *comm.AbortError:
		return e.Op, e.Seq
	case *comm.MismatchError:
		return e.Op, e.Seq
	case *comm.DeadlockError:
		return e.Op, e.Seq
	default:
		return "", 0
	}
}

func deathOf(err error) *comm.Death {
	if e, ok := errors.AsType[*comm.PeerError](err); ok {
		return e.Death
	}
	return nil
}

// refuse returns the error of a call of op with a wrong argument.
func refuse(op, format string, args ...any) error {
	return &comm.ArgumentError{Op: op, Err: fmt.Errorf(format, args...)}
}

//export goExitCode
func goExitCode() C.int {
	if err := last.Load(); err != nil {
		return C.int(comm.ExitCode(*err))
	}
	return 0
}
