package pipeline

import (
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// A cursor is a place in a plan: behind so many elements of the message of a step.
type cursor struct{ step, at int }

// take returns what of r, the range of c's step, is at c: at most n elements. It moves c behind them.
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

// rest is what of r is at c and behind.
func (c *cursor) rest(r plan.Range) plan.Range { return plan.Range{Lo: r.Lo + c.at, Hi: r.Hi} }

// isBefore reports whether c's step, or as many elements of the same one, come before d.
func (c *cursor) isBefore(d cursor) bool { return c.step < d.step || c.step == d.step && c.at <= d.at }

// A queue is operations under way, oldest first.
type queue struct {
	ring     [mostPieces]under
	first, n int
}

// under is an operation under way that moves range r; into buf, if it is awaited.
type under struct {
	op  *endpoint.Op
	r   plan.Range
	buf []byte
}

func (q *queue) isEmpty() bool { return q.n == 0 }
func (q *queue) isFull() bool  { return q.n == mostPieces }

func (q *queue) oldest() *under { return &q.ring[q.first] }

func (q *queue) push(u under) {
	q.ring[(q.first+q.n)%mostPieces] = u
	q.n++
}

func (q *queue) pop() under {
	at := &q.ring[q.first]
	u := *at
	*at = under{}
	q.first, q.n = (q.first+1)%mostPieces, q.n-1
	return u
}

// has reports whether one of the operations that have not ended moves elements of r.
func (q *queue) has(r plan.Range) bool {
	for i := range q.n {
		if u := &q.ring[(q.first+i)%mostPieces]; u.r.Overlaps(r) {
			return true
		}
	}
	return false
}

// roomFor is memory for the pieces of p that are not received in place, aligned for any element. The next task uses it again.
func (pl *Pipeline) roomFor(p plan.Plan) []byte {
	longest := 0
	for _, s := range p {
		if s.Merge != plan.Replace {
			longest = max(longest, min(s.Recv.Len(), pl.piece)*pl.call.Elem)
		}
	}
	words := (longest + 63) / 64 * 8
	if words*mostScratch > len(pl.scratch) {
		pl.scratch = make([]uint64, words*mostScratch)
	}
	return reduce.Bytes(pl.scratch)[:8*words*mostScratch]
}
