package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// A long vector goes through the stages in pieces. What one stage has written is then still in the caches when the next
// one reads it. And while a piece is between machines, the ranks of a machine can combine or copy other pieces in
// memory. That takes a second goroutine in each rank, and so pays only if there are processors to spare.

const (
	// mostPieces is the most pieces of a vector.
	mostPieces = 64
	// fewPieces is how many pieces are enough: only the first stage of the first one, and the last stage of the last
	// one, overlap with nothing.
	fewPieces = 8
)

// A piece is a part of each slice of a vector. These parts go through the stages at once.
type piece struct {
	slices [][]plan.Range // of every range of the vector: the parts of the slices of all ranks of this node, in bytes
	mine   []plan.Range   // of every range: that of this rank's slice, in elements
	plan   plan.Plan      // of this rank's rail; empty if it is on none
}

// add adds to p part i, of so many, of each slice of a range. slices has a slice for each rank of this node, in
// elements of elem bytes; me is this rank's index.
func (p *piece) add(slices []plan.Range, i, parts, me, elem int) {
	p.mine = append(p.mine, slices[me].Part(parts, i))
	var bytes []plan.Range
	for _, s := range slices {
		s = s.Part(parts, i)
		bytes = append(bytes, plan.Range{Lo: s.Lo * elem, Hi: s.Hi * elem})
	}
	p.slices = append(p.slices, bytes)
}

// sliceOf returns work from the first to the last byte of a local rank's slices in p. If the vector is one range, these
// are the bytes of one slice.
func (p *piece) sliceOf(work []byte, local int) []byte {
	first, last := p.slices[0][local], p.slices[len(p.slices)-1][local]
	return work[first.Lo:last.Hi]
}

// countPieces returns the number of pieces of a vector of so many bytes and ranges. It is the same on all ranks.
func (l *Layout) countPieces(bytes, rails, ranges int) int {
	_, most := l.Sizes()
	if most == 1 || rails == 1 && ranges > 1 { // there are no stages in memory, or they take all ranges as one
		return 1
	}
	parts := rails * l.nodes()
	part := min(max(bytes/(fewPieces*parts), l.LeastPiece), l.MostPiece)
	return min(max(bytes/(part*parts), 1), mostPieces)
}

// A stage of a piece in memory. It does nothing if one before it has failed.
type stage func(p *piece)

// inPieces carries out a call whose pieces each go through three stages: one in memory, one between nodes, and one in
// memory. between returns the task of the stage between nodes, without its plan. While a piece is between nodes, the
// next one goes through its first stage, and the one before through its last. All ranks of a node must call their
// team's methods in the same order. So a rank whose stages do not overlap calls them in that order, too.
func (c *Call) inPieces(r *Route, before stage, between func(p *piece) pipeline.Task, after stage) error {
	overlaps := c.Overlaps && len(r.pieces) > 1
	x := c.exchange(overlaps)
	for i := range r.pieces {
		p := &r.pieces[i]
		if before(p); c.err != nil {
			break
		}
		t := between(p)
		t.Plan = p.plan
		x.start(t)
		if i > 0 {
			c.err = x.await()
			after(&r.pieces[i-1])
		}
	}
	if c.err != nil && overlaps {
		c.Caller.Fail(c.err)
	}
	if err := x.end(); c.err == nil {
		c.err = err
	}
	after(&r.pieces[len(r.pieces)-1])
	return c.err
}
