package comm

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// turns is the order of a group's collectives, which are carried out one at a time: by the goroutine of a blocking call
// that finds nothing under way, and by one goroutine of the group's for as long as anything else waits.
type turns struct {
	// word has the number of collectives started so far, above two bits: busy, if somebody carries them out, and called, if
	// that one is to look here once more. It changes with the mutex held, except for a collective that nothing comes
	// between: from idle to busy, and back.
	word atomic.Uint64

	mu          sync.Mutex
	first, last *collective // those that wait, oldest first
	retired     func()      // called once nobody carries anything out
}

const (
	busy    = 1
	called  = 2
	turnOne = 4
)

// seize makes the caller carry out a collective, the number of which it returns, if nothing is under way.
func (t *turns) seize() (seq uint64, ok bool) {
	w := t.word.Load()
	return w/turnOne + 1, w&busy == 0 && t.word.CompareAndSwap(w, w+turnOne+busy)
}

// started is how many collectives have been.
func (t *turns) started() uint64 { return t.word.Load() / turnOne }

// release ends what began with seize, unless there is something else to do by now.
func (t *turns) release(seq uint64) bool {
	return t.word.CompareAndSwap(seq*turnOne+busy, seq*turnOne)
}

// enter gives c its number and its place, and says whether the caller is to carry it out: nothing else is under way.
func (t *turns) enter(c *collective) bool {
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
func (t *turns) next() *collective {
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

// more says whether there is more to carry out; if not, that ends.
func (t *turns) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.idle()
		return false
	}
	return true
}

// idle ends the carrying out. The mutex is held, so that nothing is added.
func (t *turns) idle() {
	if t.retired != nil {
		t.retired()
		t.retired = nil
	}
	t.word.Store(t.word.Load() &^ (busy | called))
}

// retire calls f as soon as nobody carries anything out. What comes later must not need what f ends.
func (t *turns) retire(f func()) {
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
		if !done && g.turns.more() { // the caller's code has ended this goroutine
			g.lane.Go(g.serve)
		}
	}()
	for c := g.turns.next(); c != nil; c = g.turns.next() {
		c.perform(false)
	}
	done = true
}

// run carries c out, or waits until it has been.
func (c *collective) run(ctx context.Context) error {
	if c.err != nil {
		return c.err
	}
	if err := ctx.Err(); err != nil { // not started: the group goes on
		return c.g.refused(fmt.Errorf("comm: %v: %w", callKind(c.call.Op), err))
	}
	c.ctx = ctx
	if !c.g.turns.enter(c) {
		err := c.wait(ctx)
		if c.panicked != nil {
			panic(c.panicked)
		}
		return err
	}
	defer func() { // also when the caller's code panics
		if c.g.turns.more() {
			c.g.lane.Go(c.g.serve)
		}
	}()
	c.g.turns.next()
	c.perform(true)
	return c.settled()
}

// start lets the group carry c out and returns at once.
func (c *collective) start() *Work {
	c.work.of = c
	if c.err != nil {
		return &c.work
	}
	c.ctx, c.done = context.Background(), make(chan struct{})
	if c.g.turns.enter(c) {
		c.g.lane.Go(c.g.serve)
	}
	return &c.work
}

// settled is c's result, once the other members know of a failure.
func (c *collective) settled() error {
	if c.err != nil {
		c.g.lane.Settle(newsTimeout)
		c.g.tells(c.err)
	}
	return c.err
}

func (c *collective) wait(ctx context.Context) error {
	if c.seq == 0 { // refused
		return c.err
	}
	select {
	case <-c.ended():
		return c.settled()
	default:
	}
	select {
	case <-c.done:
	case <-ctx.Done(): // half a collective cannot be undone, nor can the order be changed
		c.g.lane.Fail(c.g.asFailure(ctx.Err()))
		<-c.done
	}
	return c.settled()
}

func (c *collective) ended() <-chan struct{} {
	if c.done == nil {
		return alreadyDone
	}
	return c.done
}

func (c *collective) result() error {
	c.g.tells(c.err)
	return c.err
}
func (c *collective) status() Status { return Status{} }
