package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// Status says what a receive has received.
type Status struct {
	Source int // the sender's rank in the group
	Tag    int
	Count  int // elements received
}

// Work is an operation under way. Its buffers may be used again once it is done.
type Work struct {
	of operation

	mu       sync.Mutex
	err, api error // the last error from below the API, and as what it was returned
}

// An operation is what a Work stands for.
type operation interface {
	Wait(ctx context.Context) error
	Await(ctx context.Context) error // until it has ended; ctx does not end it
	Done() <-chan struct{}
	Result() error // once it has ended
	Status() core.Status
}

// args sets a to the arguments of a collective on count elements, and returns it. in is nil if the call is in place.
func args[T Element](a *core.Args, kind call.Kind, root, count int, out, in []T) *core.Args {
	a.Kind, a.Type, a.Count, a.Root, a.Out, a.In = kind, typeOf[T](), count, root, reduce.Bytes(out), reduce.Bytes(in)
	return a
}

// do carries out a collective. b is nil if there are no blocks of different lengths.
func (g *Group) do(ctx context.Context, a *core.Args, b *core.Blocks) error {
	return public(g.untyped().Do(ctx, a, b))
}

// start starts a collective. It and its Work take one allocation.
func (g *Group) start(a *core.Args, b *core.Blocks) *Work {
	var s struct {
		core.Collective
		work Work
	}
	g.untyped().Start(&s.Collective, a, b)
	s.work.of = &s.Collective
	return &s.work
}

// startPointToPoint starts m. It and its Work take one allocation.
func startPointToPoint(m core.PointToPoint) *Work {
	var s struct {
		core.Transfer
		work Work
	}
	m.Start(&s.Transfer)
	s.work.of = &s.Transfer
	return &s.work
}

// Wait waits until the operation has ended and returns its error. If ctx or the group's timeout ends first, a receive that no message has
// matched is cancelled, and any other operation makes the group fail. The timeout begins with the operation. For a collective that is when
// the collectives before it in its group have ended. If the timeout is already over when you call Wait, Wait still takes a moment to find
// the rank at fault.
func (w *Work) Wait(ctx context.Context) error { return w.public(w.operation().Wait(ctx)) }

// WaitFor waits until the operation has ended, or for d. Then the operation and the group go on, and done is false. If
// done is true, err is that of the operation. If done is false, err is that of [WithPoll].
func (w *Work) WaitFor(d time.Duration) (done bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	of := w.operation()
	switch err := of.Await(ctx); {
	case err == nil:
		return true, w.Wait(context.Background())
	case ctx.Err() != nil:
		return false, nil
	default:
		return false, fmt.Errorf("comm: WaitFor: %w", err)
	}
}

// Done returns a channel that is closed when the operation has ended. The group's timeout ends it as in Wait, even if you do not call Wait.
func (w *Work) Done() <-chan struct{} { return w.operation().Done() }

// Err returns nil until the operation has ended, and its error after that.
func (w *Work) Err() error {
	of := w.operation()
	select {
	case <-of.Done():
		return w.public(of.Result())
	default:
		return nil
	}
}

// Status returns what a receive has received, once it has ended without error.
func (w *Work) Status() Status {
	of := w.operation()
	select {
	case <-of.Done():
		return Status(of.Status())
	default:
		return Status{}
	}
}

// Pending returns the operations of I-forms on g that have not ended, such as "AllReduce #3". In a world these are also
// those on the groups made of it.
func (g *Group) Pending() (names []string) {
	if g == nil {
		return nil
	}
	of := []*core.Group{g.core}
	if g.core == g.world.All {
		of = g.world.Groups()
	}
	for _, other := range of {
		names = append(names, other.Pending()...)
	}
	return names
}

// public returns err as an error of this package, the same one each time.
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

// operation returns what w stands for. If no call has returned w, it is an operation that has failed.
func (w *Work) operation() operation {
	if w == nil || w.of == nil {
		return core.NotStarted(badArgument("Work", "no call has started it"))
	}
	return w.of
}
