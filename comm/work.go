package comm

import (
	"context"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// Status tells what a receive got.
type Status struct {
	Source int // the sender's rank in the group
	Tag    int
	Count  int // elements received
}

// Work is an operation under way. Its buffers may be used again once it is done.
type Work struct{ of operation }

// An operation is what a Work stands for.
type operation interface {
	wait(ctx context.Context) error
	ended() <-chan struct{}
	result() error // once it has ended
	status() Status
}

// Wait waits until the operation has ended and returns its error. When ctx or the group's timeout ends first, a
// receive that nothing has matched is withdrawn, and anything else fails the group. The timeout counts from the start of the
// operation, for a collective from when those before it in its group have ended. Who comes to wait when it is over still
// waits for a moment, in which to find out whom to blame.
func (w *Work) Wait(ctx context.Context) error { return w.operation().wait(ctx) }

// Done is closed when the operation has ended. The group's timeout ends it as in Wait, though nobody may wait.
func (w *Work) Done() <-chan struct{} { return w.operation().ended() }

// Err is nil until the operation has ended, then its result.
func (w *Work) Err() error {
	of := w.operation()
	select {
	case <-of.ended():
		return of.result()
	default:
		return nil
	}
}

// Status tells what a receive got, once it has ended without error.
func (w *Work) Status() Status {
	of := w.operation()
	select {
	case <-of.ended():
		return of.status()
	default:
		return Status{}
	}
}

// operation is what w stands for: one that was wrong in itself, if no call has returned w.
func (w *Work) operation() operation {
	if w == nil || w.of == nil {
		return noWork
	}
	return w.of
}

var noWork = &transfer{err: badArgument("Work", "no call has started it")}

var alreadyDone = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// A transfer is a send, a receive or a probe.
type transfer struct {
	work Work
	g    *Group
	op   *endpoint.Op
	kind callKind
	elem int
	err  error // of a call that was wrong in itself; op is then nil

	begun   time.Time // of a Work
	watched sync.Once
}

// lastQuestions is how long Wait may take, of an operation whose time is up before, to find out whose fault that is.
const lastQuestions = time.Second

// left is how long t may still be waited for.
func (t *transfer) left() time.Duration {
	limit := t.g.timeout
	if t.begun.IsZero() {
		return limit
	}
	return max(limit-time.Since(t.begun), min(limit/4, lastQuestions))
}

func (t *transfer) wait(ctx context.Context) error {
	if t.op == nil {
		return t.err
	}
	err := t.op.Wait(ctx, t.left())
	if err != nil {
		t.g.saveFlight(err)
		t.g.lane.Settle(newsTimeout)
	}
	return t.failure(err)
}

// ended lets the group wait for t, so that its time ends for those too who only look whether it is done.
func (t *transfer) ended() <-chan struct{} {
	if t.op == nil {
		return alreadyDone
	}
	select {
	case <-t.op.Done():
	default:
		t.watched.Do(func() { t.g.lane.Go(func() { _ = t.wait(context.Background()) }) })
	}
	return t.op.Done()
}

func (t *transfer) result() error {
	if t.op == nil {
		return t.err
	}
	return t.failure(t.op.Err())
}

func (t *transfer) status() Status {
	if t.op == nil || t.kind == callSend || t.op.Err() != nil {
		return Status{}
	}
	source, tag, bytes := t.op.Received()
	return Status{Source: t.g.GroupRank(source), Tag: tag, Count: bytes / t.elem}
}

func (t *transfer) failure(err error) error {
	err = t.g.failure(t.kind.String(), t.op.Number(), t.elem, err)
	t.g.tells(err)
	return err
}
