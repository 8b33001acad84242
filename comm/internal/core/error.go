package core

import (
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// An Error is why a call has failed.
type Error struct {
	Kind ErrorKind
	Op   string // what this rank called
	Seq  uint64 // the number of the call in its group; 0 for BadArgument
	Err  error

	Group *Group // for CallFailed
	Elem  int    // for CallFailed: the bytes of what the call counts in
	Rank  int    // for BadObject: the world rank whose object it is
}

// An ErrorKind is a kind of Error.
type ErrorKind uint8

// The kinds of errors.
const (
	CallFailed  ErrorKind = iota // the group has failed, or a message does not fit its receive
	BadArgument                  // the call was wrong in itself, and nothing was sent
	BadObject                    // an object could not be encoded on its rank, or could not be decoded here
)

func (e *Error) Error() string {
	if e.Kind == BadArgument {
		return fmt.Sprintf("comm: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s #%d: %v", e.Op, e.Seq, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// badArgument says that a call of op is wrong because of err.
func badArgument(op call.Kind, err error) *Error {
	return &Error{Kind: BadArgument, Op: op.String(), Err: err}
}

// noteFailure calls g.Failed, if there is one: a call on g has failed because of err.
func (g *Group) noteFailure(err error) {
	if g.Failed != nil {
		g.Failed(err)
	}
}

// noteMismatch records that a call on g returns err. If err says that collectives differ, Close need not return that again. A message of
// another type than its receive does not count: the group continues after it, and its collectives may still differ.
func (g *Group) noteMismatch(err error) {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	if ok && f.Kind == diagnosis.Mismatched && len(f.Calls) == 2 && f.Calls[0].Seq > 0 && f.Calls[1].Seq > 0 {
		g.reported.Store(true)
	}
}
