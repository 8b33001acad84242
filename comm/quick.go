package comm

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Blocking calls of ranks that share memory take a short cut where nothing stands in the way: small ones are over in less time
// than it takes to make a collective of them.

// stampedBytes is how much a collective has to move for its end to be noted, if it has not had to wait.
const stampedBytes = 4 << 10

// mates is the team of all members, if there is a group and they are one.
func (g *Group) mates() *shm.Team {
	if g == nil {
		return nil
	}
	return g.team.Load()
}

// enter lets the caller carry out call at once, as t, which are its mates. It returns false if it has to go the long way:
// something else is under way, or wrong.
func (g *Group) enter(ctx context.Context, t *shm.Team, call endpoint.Words, elem int) bool {
	if !g.lane.Usable() || ctx.Err() != nil || !t.Fits(elem) {
		return false
	}
	seq, ok := g.turns.seize()
	if !ok {
		return false
	}
	if !g.lane.Usable() { // any more; and t may be gone
		g.pass(seq)
		return false
	}
	c := &g.present
	c.seq, c.elem, c.ctx = seq, elem, ctx
	if g.running != c { // which takes longer to say than to see
		g.running = c
	}
	call = g.history.Add(call)
	g.lane.Track().Begin(seq, call)
	t.Begin(seq, shm.Call(call), g.history.Digest())
	return true
}

// pass gives the turn, which seize got, to what comes next.
func (g *Group) pass(seq uint64) {
	if !g.turns.release(seq) && g.turns.more() {
		g.lane.Go(g.serve)
	}
}

// leave ends what began with enter.
func (g *Group) leave(t *shm.Team, err error) error {
	c := &g.present
	if err == nil {
		g.lane.Track().End(c.seq, t.Sent, t.Received, !t.Waited && t.Sent+t.Received < stampedBytes)
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
		g.lane.Settle(newsTimeout)
		g.tells(err)
	}
	return err
}

// A quickReduction is a call, in words, and how it reduces; one without a kernel is none for a short cut.
type quickReduction struct {
	call endpoint.Words
	shm.Reduction
	average bool
}

// reducedQuickly is the call of kind on n elements of type T, if op is a plain one.
func reducedQuickly[T Element](g *Group, kind callKind, op Op, n, root int) (q quickReduction) {
	t := typeOf[T]()
	o, _ := op.(basicOp)
	if o < Sum || o > BitXor && o != Avg || g.widens(t, basicOps[o].kernel, o == Avg, true) {
		return q
	}
	q.call = endpoint.InWords(uint8(kind), uint8(t), uint8(o), root, n)
	q.Elem, q.Kernel, q.average = t.Size(), shm.Kernel(reduce.For(t, basicOps[o].kernel)), o == Avg
	q.Fold = g.fold(t, basicOps[o].kernel)
	return q
}

// finished is err; if there is none, buf has become the result of q.
func finished[T Element](g *Group, q *quickReduction, buf []T, err error) error {
	if q.average && err == nil {
		reduce.Divide(typeOf[T](), reduce.Bytes(buf), len(g.ranks))
	}
	return err
}

// quickMove is the call of kind on n elements of type T, and how long they are.
func quickMove[T Element](kind callKind, n, root int) (endpoint.Words, int) {
	t := typeOf[T]()
	return endpoint.InWords(uint8(kind), uint8(t), 0, root, n), t.Size()
}
