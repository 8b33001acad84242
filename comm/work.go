package comm

import (
	"context"
	"errors"
	"sync"

	"github.com/gorun/gorun/comm/internal/core"
)

// Status tells what a receive got.
type Status struct {
	Source int // the sender's rank in the group
	Tag    int
	Count  int // elements received
}

// Work is an operation under way. Its buffers may be used again once it is done.
type Work struct {
	of operation

	mu       sync.Mutex
	err, api error // the error below the API that was returned last, and as what
}

// An operation is what a Work stands for.
type operation interface {
	Wait(ctx context.Context) error
	Done() <-chan struct{}
	Result() error // once it has ended
	Status() core.Status
}

// A started collective is one with the Work that stands for it.
type started struct {
	core.Collective
	work Work
}

// start lets the group carry it out.
func (s *started) start() *Work {
	s.Start()
	s.work.of = &s.Collective
	return &s.work
}

// A message under way is a send or receive with the Work that stands for it.
type underWay struct {
	core.Transfer
	work Work
}

// startMessage starts m as something to wait for later.
func startMessage(m core.Message) *Work {
	s := new(underWay)
	m.Start(&s.Transfer)
	s.work.of = &s.Transfer
	return &s.work
}

// Wait waits until the operation has ended and returns its error. When ctx or the group's timeout ends first, a
// receive that nothing has matched is withdrawn, and anything else fails the group. The timeout counts from the start of the
// operation, for a collective from when those before it in its group have ended. Who comes to wait when it is over still
// waits for a moment, in which to find out whom to blame.
func (w *Work) Wait(ctx context.Context) error { return w.public(w.operation().Wait(ctx)) }

// Done is closed when the operation has ended. The group's timeout ends it as in Wait, though nobody may wait.
func (w *Work) Done() <-chan struct{} { return w.operation().Done() }

// Err is nil until the operation has ended, then its result.
func (w *Work) Err() error {
	of := w.operation()
	select {
	case <-of.Done():
		return w.public(of.Result())
	default:
		return nil
	}
}

// Status tells what a receive got, once it has ended without error.
func (w *Work) Status() Status {
	of := w.operation()
	select {
	case <-of.Done():
		return Status(of.Status())
	default:
		return Status{}
	}
}

// public is err as the package's own error, the same one each time.
func (w *Work) public(err error) error {
	if err == nil || w == nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !errors.Is(w.err, err) {
		w.err, w.api = err, public(err)
	}
	return w.api
}

// operation is what w stands for: one that was wrong in itself, if no call has returned w.
func (w *Work) operation() operation {
	if w == nil || w.of == nil {
		return wrongOperation{badArgument("Work", "no call has started it")}
	}
	return w.of
}

// A wrongOperation is one that has not begun, because of an error.
type wrongOperation struct{ err error }

func (o wrongOperation) Wait(context.Context) error { return o.err }

func (o wrongOperation) Done() <-chan struct{} { return closed }

func (o wrongOperation) Result() error { return o.err }

func (o wrongOperation) Status() core.Status { return core.Status{} }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
