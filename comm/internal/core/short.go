package core

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// The short path of blocking calls of ranks that share memory: where nothing stands in the way, a call goes from the group straight
// to its team. A small one is over in less time than it takes to make a Collective of it.

// stampedBytes is how much a collective has to move for its end to be noted, if it has not had to wait.
const stampedBytes = 4 << 10

// enter lets the caller carry out call at once, with t, the team of all members. It returns false if the call has to take the long
// path: something else is under way, or wrong.
func (g *Group) enter(ctx context.Context, t *shm.Team, call endpoint.Words, elem int) bool {
	if !g.Lane.Usable() || ctx.Err() != nil || !t.Fits(elem) {
		return false
	}
	seq, ok := g.order.seize()
	if !ok {
		return false
	}
	if !g.Lane.Usable() { // any more; and t may be gone
		g.pass(seq)
		return false
	}
	c := &g.short
	c.seq, c.elem, c.ctx = seq, elem, ctx
	if g.running != c { // a write costs more than this
		g.running = c
	}
	call = g.history.Add(call)
	g.Lane.Track().Begin(seq, call)
	t.Begin(seq, shm.Call(call), g.history.Digest())
	return true
}

// pass gives the turn, which seize got, to what comes next.
func (g *Group) pass(seq uint64) {
	if !g.order.release(seq) && g.order.more() {
		g.Lane.Go(g.serve)
	}
}

// leave ends what began with enter.
func (g *Group) leave(t *shm.Team, err error) error {
	c := &g.short
	if err == nil {
		g.Lane.Track().End(c.seq, t.Sent, t.Received, !t.Waited && t.Sent+t.Received < stampedBytes)
	} else {
		t.Abandon()
		c.call = endpoint.CallOf(endpoint.Words(t.Call()))
		err = c.fail(c.teamFailure(err))
	}
	if t.Waited {
		c.deadline = time.Time{}
	}
	g.pass(c.seq)
	if err != nil {
		g.Lane.Settle(NewsTimeout)
		g.noteTold(err)
	}
	return err
}

// A shortReduction is a call, in words, and how it reduces; one without a kernel takes the long path.
type shortReduction struct {
	call endpoint.Words
	shm.Reduction
	average bool
}

// inShort is the call of kind on n elements of type t, if op needs no more than to combine elements, or to average them.
func (g *Group) inShort(kind call.Kind, t reduce.Type, op call.Reduction, n, root int) (q shortReduction) {
	if !op.IsShort() || g.widens(t, op.Kernel, op.Average, true) {
		return q
	}
	q.call = endpoint.InWords(uint8(kind), uint8(t), op.Code, root, n)
	q.Elem, q.Kernel, q.average = t.Size(), shm.Kernel(reduce.For(t, op.Kernel)), op.Average
	q.Fold = g.fold(t, op.Kernel)
	return q
}

// leaveReduction is leave; if all is well, buf becomes the result of q.
func (g *Group) leaveReduction(t *shm.Team, q *shortReduction, typ reduce.Type, buf []byte, err error) error {
	err = g.leave(t, err)
	if q.average && err == nil {
		reduce.Divide(typ, buf, len(g.Ranks))
	}
	return err
}
