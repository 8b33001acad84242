// Package plan says who sends what to whom. A plan is data: for one rank, the steps of one collective, as ranges
// of elements of a vector. Nothing here moves a byte; package comm runs plans and tests run them without sockets.
//
// Costs are in steps (messages one after another on the longest path) and in elements sent per rank, for P ranks
// and a vector of n elements.
package plan

import "fmt"

// None is the peer of a step that does not send, or does not receive.
const None = -1

// A Range is elements [Lo, Hi) of the vector.
type Range struct{ Lo, Hi int }

// Len is the number of elements.
func (r Range) Len() int { return r.Hi - r.Lo }

// A Step of a rank sends Send to To and receives Recv from From, at the same time. Either peer may be None; a
// range may be empty, and then an empty message travels.
type Step struct {
	To   int
	Send Range
	From int
	Recv Range
	// Reduce says that what arrives is combined with what is there, instead of replacing it.
	Reduce bool
}

func (s Step) String() string {
	out := ""
	if s.To != None {
		out = fmt.Sprintf("send [%d:%d]→%d", s.Send.Lo, s.Send.Hi, s.To)
	}
	if s.From != None {
		if out != "" {
			out += " "
		}
		verb := "recv"
		if s.Reduce {
			verb = "reduce"
		}
		out += fmt.Sprintf("%s [%d:%d]←%d", verb, s.Recv.Lo, s.Recv.Hi, s.From)
	}
	return out
}

// A Plan is the steps of one rank, in order. The i-th message from a rank to another in one plan meets the i-th
// receive from it in the other's: steps need not have the same index on both sides.
type Plan []Step

// Even cuts n elements into size blocks whose lengths differ by at most one, the longer ones first, and returns
// block i.
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
