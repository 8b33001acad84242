// Package plan says who sends what to whom. A plan is data: the steps of one rank in one collective, as ranges of
// elements of a vector. Nothing here moves a byte. Package pipeline carries plans out, and tests run them without
// sockets.
//
// Comments give costs in steps (messages one after another on the longest path) and in elements sent per rank, for P
// ranks and a vector of n elements.
package plan

import "slices"

// None is the peer of a step that does not send, or does not receive.
const None = -1

// A Range is elements [Lo, Hi) of a vector.
type Range struct{ Lo, Hi int }

// Len is the number of elements.
func (r Range) Len() int { return r.Hi - r.Lo }

// Overlaps reports whether r and s have elements in common.
func (r Range) Overlaps(s Range) bool { return max(r.Lo, s.Lo) < min(r.Hi, s.Hi) }

// Part returns the i-th of size parts of r.
func (r Range) Part(size, i int) Range {
	p := Even(r.Len(), size, i)
	return Range{r.Lo + p.Lo, r.Lo + p.Hi}
}

// joined returns the range of blocks that are one after the other in a vector.
func joined(blocks []Range) Range { return Range{blocks[0].Lo, blocks[len(blocks)-1].Hi} }

// A Merge says what happens to elements that arrive.
type Merge uint8

// The ways to merge. Left and Right differ for operations that do not commute, and in the bits of a NaN.
const (
	Replace Merge = iota // they replace the elements that are there
	Swap                 // the same, once the step has sent the elements that are there
	Left                 // they are the left operand, and the elements that are there the right one
	Right                // they are the right operand
)

// Reduces reports whether m combines elements that arrive with those that are there.
func (m Merge) Reduces() bool { return m >= Left }

// A Step of a rank sends Send to rank To and receives Recv from rank From, at the same time. Either peer may be None. A
// range may be empty, and then an empty message travels. If both peers are the rank itself, it copies or combines.
//
// Send is a range of the vector that is sent from, Recv of the vector that is received into. They are one vector,
// unless a plan says otherwise. A plan may receive into scratch memory after the vector, and send from there.
type Step struct {
	To    int
	Send  Range
	From  int
	Recv  Range
	Merge Merge

	// No step before has received into Send, or into Recv: the elements there are this rank's input, which may be in
	// other memory. If one of these is not set, steps before have received all elements of its range. Only
	// BinomialReduce, OrderedReduce, ChainReduce, HalvingReduceScatter and Ring.ReduceScatter set them.
	SendsInput, MergesInput bool

	// Send is a range of the vector that is received into, although these are different vectors. Only BinomialGather,
	// BinomialScatter and BruckAllToAll set it.
	Forwards bool
}

// part returns s with the i-th of so many parts of what it moves.
func (s Step) part(size, i int) Step {
	s.Send, s.Recv = s.Send.Part(size, i), s.Recv.Part(size, i)
	return s
}

// A Plan is the steps of one rank, in order. The i-th message from one rank to another matches the i-th receive from it
// in the other rank's plan: steps need not have the same index on both sides. Functions for blocks of any lengths
// append to a plan that the caller passes, so that it can reuse memory.
type Plan []Step

// Extent returns how many elements p uses: those of the vector, and those in extra memory after it.
func (p Plan) Extent() int {
	n := 0
	for i := range p {
		n = max(n, p[i].Send.Hi, p[i].Recv.Hi)
	}
	return n
}

// Forwards reports whether p sends from the vector that it receives into, if that is another one than it sends from.
func (p Plan) Forwards() bool {
	return slices.ContainsFunc(p, func(s Step) bool { return s.Forwards })
}

// Combines reports whether its rank combines anything in p.
func (p Plan) Combines() bool {
	return slices.ContainsFunc(p, func(s Step) bool { return s.From != None && s.Merge.Reduces() })
}

// reversed turns p around: what p sends comes back, last first, and merges in this way. It changes p, and returns it.
func (p Plan) reversed(merge Merge) Plan {
	slices.Reverse(p)
	for i, s := range p {
		p[i] = Step{To: s.From, Send: s.Recv, From: s.To, Recv: s.Send, Merge: merge}
	}
	return p
}

// Even cuts n elements into size blocks whose lengths differ by at most one, the longer ones first, and returns block
// i.
func Even(n, size, i int) Range {
	q, r := n/size, n%size
	lo := i*q + min(i, r)
	hi := lo + q
	if i < r {
		hi++
	}
	return Range{lo, hi}
}

// mod is the non-negative remainder of a divided by size.
func mod(a, size int) int { return ((a % size) + size) % size }
