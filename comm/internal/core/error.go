package core

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

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

// noteMismatch records that a call on g returns err. If err says that collectives differ, Close need not return that
// again. A message of another type than its receive does not count: the group continues after it, and its collectives
// may still differ.
func (g *Group) noteMismatch(err error) {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	if ok && f.Kind == diagnosis.Mismatched && len(f.Calls) == 2 && f.Calls[0].Seq > 0 && f.Calls[1].Seq > 0 {
		g.reported.Store(true)
	}
}

// Collectives call the caller's own code: operations of NewOp, and codecs. If it panics, or ends its goroutine by
// runtime.Goexit, this rank has done only a part of the collective. So the group fails, and the other ranks are
// notified. In the goroutine of a blocking call the panic continues. In the group's own goroutine, where the caller
// cannot recover a panic, it becomes the call's error.

// longestPanic is the most bytes of a panic's value that are sent to other ranks.
const longestPanic = 512

// broken fails g because the caller's code has ended call without returning: by a panic with value v, or by Goexit if
// that is nil. It returns the failure. It is called while that goes on.
func (g *Group) broken(call string, v any) *diagnosis.Failure {
	what, after := "panic", "runtime.gopanic"
	if v == nil {
		what, after = "runtime.Goexit", "runtime.Goexit"
	}
	text := fmt.Sprintf("%s in %s", what, call)
	if at := codeBelow(after); at != "" {
		text += ", in " + at
	}
	f := &diagnosis.Failure{Kind: diagnosis.Aborted, Rank: g.World.Rank}
	if v != nil {
		said := fmt.Sprint(v)
		said, _, _ = strings.Cut(said[:min(len(said), longestPanic)], "\n")
		text += ": " + strings.ToValidUTF8(said, "")
	}
	f.Text = text
	f.Err = &panicError{text, v}
	g.Comm.Fail(f)
	return f
}

// A panicError is a panic of the caller's code. If the panic's value is an error, it wraps that.
type panicError struct {
	text  string
	value any
}

func (e *panicError) Error() string { return e.text }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// codeBelow returns the line of the caller's code that has called a function of the runtime, which still runs.
func codeBelow(function string) string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for found := false; ; {
		frame, more := frames.Next()
		if found && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s (%s:%d)", filepath.Base(frame.Function), filepath.Base(frame.File), frame.Line)
		}
		found = found || frame.Function == function
		if !more {
			return ""
		}
	}
}

// endBroken ends c, whose perform the caller's code has ended: by a panic with value v, or by Goexit if v is nil. mine
// says that this is the goroutine of the call, in which the panic continues.
func (c *Collective) endBroken(b Backend, v any, mine bool) {
	g := c.g
	f := g.broken(fmt.Sprintf("%v #%d", c.kind(), c.seq), v)
	g.messages.Abandon() // also if it is a part of b
	if b != nil {
		b.Abandon()
	}
	g.Comm.End(c.seq, f)
	c.err = c.failed(f)
	g.Comm.AwaitNotified(NotifyTimeout)
	c.forget()
	if !mine {
		c.panicked = v
	}
	if c.done != nil {
		close(c.done)
	}
	if c == &g.blocking { // Do does not come to that
		c.err = nil
		g.pass(c.seq)
	}
	if mine && v != nil {
		panic(v)
	}
}

// Guard runs f, which calls the caller's codec. If f does not return, the group fails.
func (o *Objects) Guard(f func()) {
	g, returned := o.g, false
	defer func() {
		if returned || g == NoGroup {
			return
		}
		v := recover()
		_ = g.broken(o.kind().String(), v) // later calls return it
		g.Comm.AwaitNotified(NotifyTimeout)
		if v != nil {
			panic(v)
		}
	}()
	f()
	returned = true
}
