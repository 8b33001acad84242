package core

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// An order is that of a group's collectives, which are carried out one at a time: by the goroutine of a blocking call
// that finds nothing under way, and by one goroutine of the group's for as long as anything else waits.
type order struct {
	// word has the number of collectives started so far, above two bits: busy, if somebody carries them out, and called, if
	// that one is to look here once more. It changes with the mutex held, except for a collective that nothing comes
	// between: from idle to busy, and back.
	word atomic.Uint64

	mu          sync.Mutex
	first, last *Collective // those that wait, oldest first
	retired     func()      // called once nobody carries anything out
}

const (
	busy    = 1
	called  = 2
	turnOne = 4
)

// seize makes the caller carry out a collective, the number of which it returns, if nothing is under way.
func (t *order) seize() (seq uint64, ok bool) {
	w := t.word.Load()
	return w/turnOne + 1, w&busy == 0 && t.word.CompareAndSwap(w, w+turnOne+busy)
}

// started is how many collectives have been.
func (t *order) started() uint64 { return t.word.Load() / turnOne }

// release ends what began with seize, unless there is something else to do by now.
func (t *order) release(seq uint64) bool {
	return t.word.CompareAndSwap(seq*turnOne+busy, seq*turnOne)
}

// enter gives c its number and its place, and reports whether the caller is to carry it out: nothing else is under way.
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
			t.last.behind = c
		}
		t.last = c
		idle := w&busy == 0
		if !idle && c.done == nil {
			c.done = make(chan struct{})
		}
		return idle
	}
}

// next takes the oldest that waits, or ends the carrying out.
func (t *order) next() *Collective {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.first
	if c == nil {
		t.idle()
		return nil
	}
	t.first, c.behind = c.behind, nil
	return c
}

// more reports whether there is more to carry out; if not, that ends.
func (t *order) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.idle()
		return false
	}
	return true
}

// idle ends the carrying out. The mutex is held, so that nothing is added.
func (t *order) idle() {
	if t.retired != nil {
		t.retired()
		t.retired = nil
	}
	t.word.Store(t.word.Load() &^ (busy | called))
}

// retire calls f as soon as nobody carries anything out. What comes later must not need what f ends.
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

// serve carries out what waits.
func (g *Group) serve() {
	done := false
	defer func() {
		if !done && g.order.more() { // the caller's code has ended this goroutine
			g.Lane.Go(g.serve)
		}
	}()
	for c := g.order.next(); c != nil; c = g.order.next() {
		c.perform(false)
	}
	done = true
}

// Run carries c out, or waits until it has been.
func (c *Collective) Run(ctx context.Context) error {
	if c.err != nil {
		return c.err
	}
	if err := ctx.Err(); err != nil { // not started: the group goes on
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
			c.g.Lane.Go(c.g.serve)
		}
	}()
	c.g.order.next()
	c.perform(true)
	return c.settled()
}

// Start lets the group carry c out and returns at once.
func (c *Collective) Start() {
	if c.err != nil {
		return
	}
	c.ctx, c.done = context.Background(), make(chan struct{})
	if c.g.order.enter(c) {
		c.g.Lane.Go(c.g.serve)
	}
}

// settled is c's result, once the other members know of a failure.
func (c *Collective) settled() error {
	if c.err != nil {
		c.g.Lane.Settle(NewsTimeout)
		c.g.noteMismatch(c.err)
	}
	return c.err
}

// Wait waits until c has ended and returns its error. When ctx ends first, the group fails.
func (c *Collective) Wait(ctx context.Context) error {
	if c.seq == 0 { // refused
		return c.err
	}
	select {
	case <-c.Done():
		return c.settled()
	default:
	}
	select {
	case <-c.done:
	case <-ctx.Done(): // half a collective cannot be undone, nor can the order be changed
		c.g.Lane.Fail(c.g.Lane.AsFailure(ctx.Err()))
		<-c.done
	}
	return c.settled()
}

// Done is closed when c has ended.
func (c *Collective) Done() <-chan struct{} {
	if c.done == nil {
		return alreadyDone
	}
	return c.done
}

// Result is c's error, once it has ended.
func (c *Collective) Result() error {
	c.g.noteMismatch(c.err)
	return c.err
}

// Status is empty: c receives no message.
func (c *Collective) Status() Status { return Status{} }
