package core

import (
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// An Error is why a call on a group has failed.
type Error struct {
	Group *Group
	Op    string // what this rank called
	Seq   uint64 // its number
	Elem  int    // bytes of what the call counts in
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("%s #%d: %v", e.Op, e.Seq, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// An ArgumentError says that a call was wrong in itself.
type ArgumentError struct {
	Op  string // the call
	Err error  // what is wrong with it
}

func (e *ArgumentError) Error() string { return fmt.Sprintf("comm: %s: %v", e.Op, e.Err) }

func (e *ArgumentError) Unwrap() error { return e.Err }

// noteFailure calls g.Failed, if there is one: a call on g has failed because of err.
func (g *Group) noteFailure(err error) {
	if g.Failed != nil {
		g.Failed(err)
	}
}

// noteMismatch notes that a call on g returns err: if err says that collectives differ, Close need not say so again. A message of
// another type than its receive does not count: the group goes on after it, and its collectives may still differ.
func (g *Group) noteMismatch(err error) {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	if ok && f.Kind == diagnosis.Mismatched && len(f.Calls) == 2 && f.Calls[0].Seq > 0 && f.Calls[1].Seq > 0 {
		g.reported.Store(true)
	}
}
