package core

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// An order has a group's collectives in the order in which they were started. They are carried out one at a time: by
// the goroutine of a blocking call that finds none under way, or by one goroutine of the group as long as others wait.
type order struct {
	// word has the number of collectives started so far, above two bits: busy, if a goroutine carries them out, and
	// called, if that goroutine must check the order once more. It changes with the mutex held. The exception is a
	// collective that none comes after: it goes from idle to busy and back without the mutex.
	word atomic.Uint64

	mu          sync.Mutex
	first, last *Collective // those that wait, oldest first
	current     *Collective // that is carried out, if Start has started it
	retired     func()      // called once no goroutine carries out a collective
}

const (
	busy    = 1
	called  = 2
	turnOne = 4
)

// seize starts a collective if none is under way. It returns the collective's number. The caller must carry it out.
func (t *order) seize() (seq uint64, ok bool) {
	w := t.word.Load()
	return w/turnOne + 1, w&busy == 0 && t.word.CompareAndSwap(w, w+turnOne+busy)
}

// block makes others wait with their collectives, if none is under way, and starts none itself. It returns the number
// of the last one. The caller ends that by release.
func (t *order) block() (last uint64, ok bool) {
	w := t.word.Load()
	return w / turnOne, w&busy == 0 && t.word.CompareAndSwap(w, w+busy)
}

// release ends what began with seize or block. It returns false, and does nothing, if another collective has been
// started by now.
func (t *order) release(seq uint64) bool {
	return t.word.CompareAndSwap(seq*turnOne+busy, seq*turnOne)
}

// enter gives c its number and its position. It reports whether the caller must carry it out, because no other one is
// under way.
func (t *order) enter(c *Collective) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		w := t.word.Load()
		if !t.word.CompareAndSwap(w, (w+turnOne)|busy) {
			continue
		}
		c.seq = w/turnOne + 1
		if t.first == nil {
			t.first = c
		} else {
			t.last.next = c
		}
		t.last = c
		idle := w&busy == 0
		if !idle && c.done == nil {
			c.done = make(chan struct{})
		}
		return idle
	}
}

// next removes and returns the oldest collective that waits. If there is none, it makes the order idle and returns nil.
func (t *order) next() *Collective {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.first
	t.current = nil
	if c == nil {
		t.idle()
		return nil
	}
	t.first, c.next = c.next, nil
	if c.started {
		t.current = c
	}
	return c
}

// underWay returns the collectives that have been started and have not ended, oldest first.
func (t *order) underWay() (all []*Collective) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && !t.current.hasEnded() {
		all = append(all, t.current)
	}
	for c := t.first; c != nil; c = c.next {
		if c.started {
			all = append(all, c)
		}
	}
	return all
}

// more reports whether a collective waits. If not, it makes the order idle.
func (t *order) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.idle()
		return false
	}
	return true
}

// idle makes the order idle. The mutex is held, so that no collective is added meanwhile.
func (t *order) idle() {
	if t.retired != nil {
		t.retired()
		t.retired = nil
	}
	t.word.Store(t.word.Load() &^ (busy | called))
}

// retire calls f as soon as no goroutine carries out a collective. Later collectives must not need what f releases.
func (t *order) retire(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retired = f
	for {
		w := t.word.Load()
		if !t.word.CompareAndSwap(w, w|busy|called) {
			continue
		}
		if w&busy == 0 {
			t.idle()
		}
		return
	}
}

// serve carries out the collectives that wait.
func (g *Group) serve() {
	done := false
	defer func() {
		if !done && g.order.more() { // the caller's code has ended this goroutine
			g.Comm.Go(g.serve)
		}
	}()
	for c := g.order.next(); c != nil; c = g.order.next() {
		c.served = true
		c.perform(false)
	}
	done = true
}

// pass ends the turn that began with seize or block.
func (g *Group) pass(seq uint64) {
	if !g.order.release(seq) && g.order.more() {
		g.Comm.Go(g.serve)
	}
}

// Run carries c out, or waits until it has been.
func (c *Collective) Run(ctx context.Context) error {
	if c.err != nil {
		return c.err
	}
	if err := ctx.Err(); err != nil { // not started, so the group has not failed
		return c.g.Refused(fmt.Errorf("comm: %v: %w", c.kind(), err))
	}
	c.ctx = ctx
	if !c.g.order.enter(c) {
		err := c.Wait(ctx)
		if c.panicked != nil {
			panic(c.panicked)
		}
		return err
	}
	defer func() { // also when the caller's code panics
		if c.g.order.more() {
			c.g.Comm.Go(c.g.serve)
		}
	}()
	c.g.order.next()
	c.perform(true)
	return c.g.notified(c.err)
}

// notified returns err, of a call. If that has failed, it first waits until the other members know.
func (g *Group) notified(err error) error {
	if err != nil {
		g.Comm.AwaitNotified(NotifyTimeout)
		g.noteMismatch(err)
	}
	return err
}

// Wait waits until c has ended and returns its error. When ctx ends first, the group fails.
func (c *Collective) Wait(ctx context.Context) error {
	if c.seq == 0 { // refused
		return c.err
	}
	select {
	case <-c.Done():
		return c.g.notified(c.err)
	default:
	}
	defer c.g.bind()()
	if err := endpoint.Await(c.g.polled(ctx), c.done); err != nil { // a collective cannot be undone, and the order cannot be changed
		c.g.Comm.Fail(err)
		<-c.done
	}
	return c.g.notified(c.err)
}

// Await waits until c has ended, and returns nil, or until ctx has. That does not end c.
func (c *Collective) Await(ctx context.Context) error {
	return endpoint.Await(c.g.polled(ctx), c.Done())
}

var alreadyDone = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done is closed when c has ended.
func (c *Collective) Done() <-chan struct{} {
	c.attended.Store(true)
	if c.done == nil {
		return alreadyDone
	}
	return c.done
}

// hasEnded reports whether c, which Start has started, has ended.
func (c *Collective) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *Collective) name() string { return fmt.Sprintf("%v #%d", c.kind(), c.seq) }

// Result is c's error, once it has ended.
func (c *Collective) Result() error {
	c.g.noteMismatch(c.err)
	return c.err
}

// Status is empty: c receives no message.
func (c *Collective) Status() Status { return Status{} }
