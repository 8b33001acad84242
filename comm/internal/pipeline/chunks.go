package pipeline

import (
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// A cursor is a position in a plan: a step, and so many elements of its message.
type cursor struct{ step, at int }

// take returns the next elements of r, the range of c's step: n at most. It moves c behind them.
func (c *cursor) take(r plan.Range, n int) plan.Range {
	p := c.rest(r)
	if p.Len() > n {
		p.Hi = p.Lo + n
		c.at += n
	} else {
		*c = cursor{step: c.step + 1}
	}
	return p
}

// rest returns the elements of r from c on.
func (c *cursor) rest(r plan.Range) plan.Range { return plan.Range{Lo: r.Lo + c.at, Hi: r.Hi} }

// isBefore reports whether c is not after d.
func (c *cursor) isBefore(d cursor) bool { return c.step < d.step || c.step == d.step && c.at <= d.at }

// A queue has transfers under way, oldest first.
type queue struct {
	ring     [mostChunks]transfer
	first, n int
}

// A transfer is a send of range r, or a receive of it into buf.
type transfer struct {
	op  *endpoint.Op
	r   plan.Range
	buf []byte
}

func (q *queue) isEmpty() bool { return q.n == 0 }
func (q *queue) isFull() bool  { return q.n == mostChunks }

func (q *queue) oldest() *transfer { return &q.ring[q.first] }

func (q *queue) push(t transfer) {
	q.ring[(q.first+q.n)%mostChunks] = t
	q.n++
}

func (q *queue) pop() transfer {
	at := &q.ring[q.first]
	t := *at
	*at = transfer{}
	q.first, q.n = (q.first+1)%mostChunks, q.n-1
	return t
}

// has reports whether one of the transfers moves elements of r.
func (q *queue) has(r plan.Range) bool {
	for i := range q.n {
		if t := &q.ring[(q.first+i)%mostChunks]; t.r.Overlaps(r) {
			return true
		}
	}
	return false
}

// scratchFor returns memory for the chunks of p that are not received in place, aligned for any element. The next task
// reuses it.
func (pl *Pipeline) scratchFor(p plan.Plan) []byte {
	longest := 0
	for _, s := range p {
		if s.Merge != plan.Replace && !pl.isCopy(&s) {
			longest = max(longest, min(s.Recv.Len(), pl.chunk)*pl.call.Elem)
		}
	}
	pl.scratch.Reset()
	return pl.scratch.Take((longest + 63) / 64 * 64 * pl.slots)
}

// A Scratch has memory that one call after the other uses.
type Scratch struct {
	words []uint64
	taken int
}

// Reset begins the next call: it may use the memory of the one before.
func (s *Scratch) Reset() { s.taken = 0 }

// Take returns n bytes for the call, aligned for any element. They hold anything.
func (s *Scratch) Take(n int) []byte {
	words := (n + 7) / 8
	if s.taken+words > len(s.words) { // the next call finds enough
		s.words = make([]uint64, s.taken+words)
	}
	m := reduce.Bytes(s.words[s.taken : s.taken+words])
	s.taken += words
	return m[:n]
}

// The functions below say what a pipeline may do ahead of the order in which steps take effect.

// ahead moves c to the next step with a peer, and returns it. It returns nil if that step is too far ahead, or comes
// after a copy that has not been done.
func (pl *Pipeline) ahead(c *cursor, peer func(*plan.Step) int) *plan.Step {
	p := pl.task.Plan
	for ; c.step < len(p) && c.step <= pl.done.step+mostSteps; *c = (cursor{step: c.step + 1}) {
		s := &p[c.step]
		if pl.isCopy(s) && c.step >= pl.done.step {
			return nil
		}
		if peer(s) != plan.None && !pl.isCopy(s) {
			return s
		}
	}
	return nil
}

func goesTo(s *plan.Step) int    { return s.To }
func comesFrom(s *plan.Step) int { return s.From }

// mayReceive reports whether the receive of the next chunk may be posted: there is memory for it, and what is in its
// place is not needed.
func (pl *Pipeline) mayReceive() bool {
	s := pl.ahead(&pl.in, comesFrom)
	if s == nil {
		return false
	}
	if s.Merge != plan.Replace {
		return pl.waiting < pl.slots
	}
	at := pl.in
	r := at.take(s.Recv, pl.chunk)
	if pl.merges(r, pl.in.step) {
		return false
	}
	if !pl.inPlace {
		return true
	}
	at = pl.out
	for at.step <= pl.in.step {
		if s := &pl.task.Plan[at.step]; s.To != plan.None && !pl.task.sendsInput(s) && at.rest(s.Send).Overlaps(r) {
			return false
		}
		at = cursor{step: at.step + 1}
	}
	return !pl.sent.has(r)
}

// maySend reports whether the next chunk may be sent: its bytes are final. An empty message says that the steps before
// it have been done, so it is never sent early.
func (pl *Pipeline) maySend() bool {
	s := pl.ahead(&pl.out, goesTo)
	if s == nil || s.Send.Len() == 0 || pl.sentAhead >= pl.mostAhead || !pl.isEager(s) {
		return false
	}
	at := pl.out
	return !pl.inPlace || !pl.merges(at.take(s.Send, pl.chunk), pl.out.step)
}

// merges reports whether steps before step will still change something of r.
func (pl *Pipeline) merges(r plan.Range, step int) bool {
	for at := pl.done; at.step < step; at = (cursor{step: at.step + 1}) {
		if s := &pl.task.Plan[at.step]; s.From != plan.None && at.rest(s.Recv).Overlaps(r) {
			return true
		}
	}
	return false
}
