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

// startCollective starts the collective that describe describes. It and its Work take one allocation.
func startCollective(describe func(c *core.Collective)) *Work {
	var s struct {
		core.Collective
		work Work
	}
	describe(&s.Collective)
	s.Start()
	s.work.of = &s.Collective
	return &s.work
}

// startMessage starts m. It and its Work take one allocation.
func startMessage(m core.Message) *Work {
	var s struct {
		core.Transfer
		work Work
	}
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

// operation is what w stands for. If no call has returned w, it is one that has failed.
func (w *Work) operation() operation {
	if w == nil || w.of == nil {
		return core.NotStarted(badArgument("Work", "no call has started it"))
	}
	return w.of
}
