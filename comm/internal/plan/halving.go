package plan

import (
	"math/bits"
	"slices"
)

// HalvingAllReduce halves the vector again and again: ranks whose numbers differ in one bit send each other the half
// that the other one continues with, until each has reduced a part of its own. Then they send their parts back in the
// same way. It is for vectors of medium length. If size is not a power of two, the surplus ranks give their vectors to
// neighbours first, and get the result from them last.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.5 ("Rabenseifner's algorithm"). 2 log2 P steps (plus two); 2n(P-1)/P
// elements sent, the least possible, for P a power of two. Partners stand for ranks next to each other and combine in
// order of rank: the operation need not commute. One rank combines each element and the others copy it, so all get the
// same bits.
func HalvingAllReduce(rank, size, n int) Plan {
	return folded(rank, size, n, func(me, core int, partner func(bit int) int) Plan {
		var halve, double Plan
		mine := Range{0, n}
		for bit := 1; bit < core; bit *= 2 {
			middle := (mine.Lo + mine.Hi) / 2
			keep, send := Range{mine.Lo, middle}, Range{middle, mine.Hi}
			if me&bit != 0 {
				keep, send = send, keep
			}
			to := partner(bit)
			halve = append(halve, Step{To: to, Send: send, From: to, Recv: keep, Merge: fromSide(me, bit)})
			double = append(double, Step{To: to, Send: keep, From: to, Recv: send})
			mine = keep
		}
		slices.Reverse(double)
		return append(halve, double...)
	})
}

// HalvingReduceScatter appends to p the plan that gives rank the reduction of blocks[rank]. The blocks are one vector.
// Of those that it still combines, every rank sends the half that it does not keep to a rank that keeps it. It is for
// short blocks: it takes fewer steps than an exchange between all pairs, and overwrites the whole vector. If the number
// of ranks is not a power of two, the surplus ranks give their vectors to neighbours first, and get their blocks from
// them last. The operation must commute.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.4 ("recursive halving"). log2 P steps (plus two); all blocks but one
// sent, the least possible, for P a power of two.
func HalvingReduceScatter(p Plan, rank int, blocks []Range) Plan {
	size := len(blocks)
	all := joined(blocks)
	power := 1 << (bits.Len(uint(size)) - 1)                 // the largest power of two <= size
	extra := size - power                                    // this many even ranks give their vector to the odd rank above them
	first := func(me int) int { return me + min(me, extra) } // the lowest rank whose block number me of the others combines
	of := func(from, to int) Range { return joined(blocks[first(from):first(to)]) }
	me, input := rank-extra, true // input: it has not received anything yet
	if rank < 2*extra {
		if rank%2 == 0 {
			return append(p,
				Step{To: rank + 1, Send: all, From: None, SendsInput: true},
				Step{To: None, From: rank + 1, Recv: blocks[rank]})
		}
		p = append(p, Step{To: None, From: rank - 1, Recv: all, Merge: Left, MergesInput: true})
		me, input = rank/2, false
	}
	for half, lo := power/2, 0; half > 0; half /= 2 { // of the numbers from lo to lo+2*half
		keep, send := lo, lo+half
		if me >= lo+half {
			keep, send = send, keep
		}
		partner := me ^ half
		to := first(partner)
		if partner < extra {
			to++
		}
		p = append(p, Step{
			To: to, Send: of(send, send+half),
			From: to, Recv: of(keep, keep+half), Merge: fromSide(me, half),
			SendsInput: input, MergesInput: input,
		})
		lo, input = keep, false
	}
	if rank < 2*extra {
		p = append(p, Step{To: rank - 1, Send: blocks[rank-1], From: None})
	}
	return p
}
