package core

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
)

// A Collective is a collective call: its arguments, its position in its group's order, and its state.
type Collective struct {
	g       *Group
	call    call.Packed // what ranks agree on
	begun   call.Packed // once its turn has come: the same, and the history before it
	elem    int         // the bytes of what plans count in: an element, or several that make one value
	out, in pipeline.Vector
	reducing
	steps func(c *Collective) error // carry out a call that consists of several

	ctx        context.Context
	polled     context.Context // of the call with number polledOf; see Context
	polledOf   uint64
	served     bool      // the caller's goroutine does not carry it out
	deadline   time.Time // of the call with number deadlineOf; see Remaining
	deadlineOf uint64
	seq        uint64
	next       *Collective   // in the order of the group
	done       chan struct{} // closed when the call has ended; nil if no other goroutine can wait for it
	started    bool          // by Start
	attended   atomic.Bool   // somebody has waited for it since
	err        error
	panicked   any // the value of a panic in perform, in another goroutine than the call's
}

// NoGroup is the group of a rank that is no member: every call on it fails.
var NoGroup = &Group{rank: -1}

// NotStarted returns a Collective that has failed with err before it began.
func NotStarted(err error) *Collective { return &Collective{g: NoGroup, err: err} }

// Do carries out a collective, or waits until another goroutine has. b is nil if there are no blocks of different lengths.
func (g *Group) Do(ctx context.Context, a *Args, b *Blocks) error {
	if err := a.check(g, b); err != nil {
		return g.Refused(badArgument(a.Kind, err))
	}
	if err := ctx.Err(); err != nil { // not started, so the group has not failed
		return g.Refused(fmt.Errorf("comm: %v: %w", a.Kind, err))
	}
	seq, ok := g.order.seize()
	if !ok {
		c := new(Collective)
		c.set(ctx, g, a, b)
		return c.Run(ctx)
	}
	c := &g.blocking
	c.seq = seq
	if m := g.memory; m != nil && b == nil && m.takesAsIs(a) && g.Comm.Usable() {
		m.runAsIs(ctx, c, a)
	} else {
		c.set(ctx, g, a, b)
		c.perform(true)
	}
	if c.err == nil {
		g.pass(seq)
		return nil
	}
	err := c.err
	c.err = nil
	g.pass(seq) // from now on c may be another call
	return g.notified(err)
}

// Start starts a collective as c, and returns at once. The group carries it out.
func (g *Group) Start(c *Collective, a *Args, b *Blocks) {
	if err := a.check(g, b); err != nil {
		c.g, c.err = g, g.Refused(badArgument(a.Kind, err))
		return
	}
	c.set(context.Background(), g, a, b)
	c.done, c.started = make(chan struct{}), true
	if c.g.order.enter(c) {
		c.g.Comm.Go(c.g.serve)
	}
}

func (c *Collective) kind() call.Kind { return c.call.Kind() }

func (c *Collective) root() int { return c.call.Root() }

// forget drops the references to the caller's memory, so that neither c nor its group keeps it alive.
func (c *Collective) forget() {
	c.op, c.kernel, c.into, c.operands, c.steps, c.out.Buf, c.in.Buf = nil, nil, nil, nil, nil, nil, nil
	if len(c.out.Blocks)+len(c.in.Blocks) > 0 {
		c.out.Clear()
		c.in.Clear()
	}
}

// Refused returns err, because of which this rank does not make a call. It notifies the other ranks, which may wait in
// that call.
func (g *Group) Refused(err error) error {
	if g.Comm != nil {
		g.Comm.Refused(err.Error())
	}
	return err
}
