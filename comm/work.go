package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// Status tells what a receive got.
type Status struct {
	Source int // the sender's rank in the group
	Tag    int
	Count  int // elements received
}

// Work is a point-to-point operation under way. Its buffer may be used again once it is done.
type Work struct {
	g    *Group
	op   *endpoint.Op
	kind callKind
	seq  uint64
	elem int
	err  error // of a call that was wrong in itself; op is then nil
}

var alreadyDone = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Wait waits until the operation has ended and returns its error. When ctx or the group's timeout ends first, a
// receive that nothing has matched is withdrawn, and anything else fails the group.
func (w *Work) Wait(ctx context.Context) error {
	if w.op == nil {
		return w.err
	}
	err := w.op.Wait(ctx, w.g.timeout)
	if err != nil {
		w.g.lane.Settle(newsTimeout)
	}
	return w.failure(err)
}

// Done is closed when the operation has ended.
func (w *Work) Done() <-chan struct{} {
	if w.op == nil {
		return alreadyDone
	}
	return w.op.Done()
}

// Err is nil until the operation has ended, then its result.
func (w *Work) Err() error {
	select {
	case <-w.Done():
	default:
		return nil
	}
	if w.op == nil {
		return w.err
	}
	return w.failure(w.op.Err())
}

// Status tells what a receive got, once it has ended without error.
func (w *Work) Status() Status {
	if w.op == nil || w.kind != callRecv {
		return Status{}
	}
	select {
	case <-w.op.Done():
	default:
		return Status{}
	}
	if w.op.Err() != nil {
		return Status{}
	}
	source, tag, bytes := w.op.Received()
	return Status{Source: w.g.GroupRank(source), Tag: tag, Count: bytes / w.elem}
}

func (w *Work) failure(err error) error { return w.g.failure(w.kind.String(), w.seq, w.elem, err) }
