package comm

import (
	"context"
	"errors"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// newsTimeout is how long a call that fails may take to tell the other members why.
const newsTimeout = 100 * time.Millisecond

// A collective is a call, checked and planned, on bytes.
type collective struct {
	call   endpoint.Call
	plan   plan.Plan
	elem   int           // bytes per element
	src    []byte        // what is sent from
	dst    []byte        // what is received into; the same as src for plans that work in place
	base   int           // the element of the plan's vector at which dst starts
	kernel reduce.Kernel // for steps that reduce
}

// A turn is a collective's place in its group's order.
type turn struct {
	seq      uint64
	previous <-chan struct{} // closed when the one before has ended; nil for the first
	done     chan struct{}
}

// enter takes the next place in the group's order of collectives.
func (g *Group) enter() turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq++
	t := turn{seq: g.seq, previous: g.last, done: make(chan struct{})}
	g.last = t.done
	return t
}

// run waits for its turn and executes c. An error leaves the group failed.
func (g *Group) run(ctx context.Context, t turn, c *collective) error {
	defer close(t.done)
	err := ctx.Err()
	if t.previous != nil {
		select {
		case <-t.previous:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil {
		if err = g.lane.Begin(t.seq, c.call); err == nil {
			err = g.execute(ctx, t.seq, c)
		}
	}
	if err == nil {
		return nil
	}
	g.lane.Fail(g.asFailure(err))
	g.lane.Settle(newsTimeout)
	return g.failure(callKind(c.call.Op).String(), t.seq, c.elem, err)
}

// asFailure is what the other members are told of err.
func (g *Group) asFailure(err error) *endpoint.Failure {
	var f *endpoint.Failure
	if errors.As(err, &f) {
		return f
	}
	return &endpoint.Failure{Kind: endpoint.Aborted, Rank: g.w.rank, Text: err.Error(), Err: err}
}

// execute carries out the plan: the one place that both moves and reduces.
func (g *Group) execute(ctx context.Context, seq uint64, c *collective) error {
	deadline := time.Now().Add(g.timeout)
	wait := func(op *endpoint.Op) error {
		if op == nil {
			return nil
		}
		return op.Wait(ctx, max(time.Until(deadline), time.Nanosecond))
	}
	scratch := g.room(c)
	for _, s := range c.plan {
		var recv, send *endpoint.Op
		target := c.target(s)
		if s.From != plan.None {
			into := target
			if s.Reduce {
				into = scratch[:len(target)]
			}
			recv = g.lane.Recv(g.ranks[s.From], 0, seq, c.call, into)
		}
		if s.To != plan.None {
			out := c.src[s.Send.Lo*c.elem : s.Send.Hi*c.elem]
			send = g.lane.Send(g.ranks[s.To], 0, seq, c.call, out)
		}
		err := wait(recv)
		if err != nil {
			g.lane.Fail(g.asFailure(err)) // so that the send ends too
		}
		if sendErr := wait(send); err == nil {
			err = sendErr
		}
		if err != nil {
			return err
		}
		if s.Reduce {
			c.kernel(target, scratch[:len(target)])
		}
	}
	return nil
}

func (c *collective) target(s plan.Step) []byte {
	if s.From == plan.None {
		return nil
	}
	return c.dst[(s.Recv.Lo-c.base)*c.elem : (s.Recv.Hi-c.base)*c.elem]
}

// room is memory for the longest message that c reduces, aligned for any element. It is the group's, and kept for the
// next collective: only the one whose turn it is uses it.
func (g *Group) room(c *collective) []byte {
	longest := 0
	for _, s := range c.plan {
		if s.Reduce {
			longest = max(longest, s.Recv.Len()*c.elem)
		}
	}
	if words := (longest + 7) / 8; words > len(g.scratch) {
		g.scratch = make([]uint64, words)
	}
	return reduce.Bytes(g.scratch)
}
