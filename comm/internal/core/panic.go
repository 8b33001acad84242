package core

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// Collectives call the caller's own code: operations of NewOp, and codecs. If it panics, or ends its goroutine by runtime.Goexit, this rank
// has done only a part of the collective. So the group fails, and the other ranks are notified. In the goroutine of a blocking call the
// panic continues. In the group's own goroutine, where the caller cannot recover a panic, it becomes the call's error.

// longestPanic is the most bytes of a panic's value that are sent to other ranks.
const longestPanic = 512

// broken fails g because the caller's code has ended call without returning: by a panic with value v, or by Goexit if that is nil. It
// returns the failure. It is called while that goes on.
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

// endBroken ends c, whose perform the caller's code has ended: by a panic with value v, or by Goexit if v is nil. mine says that this is
// the goroutine of the call, in which the panic continues.
func (c *Collective) endBroken(v any, mine bool) {
	g := c.g
	f := g.broken(fmt.Sprintf("%v #%d", c.kind(), c.seq), v)
	_ = g.Pipeline.End() // with f
	c.endInMemory(f)
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
	if mine && v != nil {
		panic(v)
	}
}

// Guard runs f, the caller's own code in a call of op. If f does not return, the group fails.
func (g *Group) Guard(op call.Kind, f func()) {
	returned := false
	defer func() {
		if returned || g == NoGroup {
			return
		}
		v := recover()
		_ = g.broken(op.String(), v) // later calls return it
		g.Comm.AwaitNotified(NotifyTimeout)
		if v != nil {
			panic(v)
		}
	}()
	f()
	returned = true
}
