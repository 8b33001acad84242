package plan

import "slices"

// HalvingAllReduce halves the vector again and again: ranks whose numbers differ in one bit send each other the half that the other one
// continues with, until each has reduced a part of its own. Then they send their parts back in the same way. It is for vectors of medium
// length. If size is not a power of two, the surplus ranks give their vectors to neighbours first, and get the result from them last.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.5 ("Rabenseifner's algorithm"). 2 log2 P steps (plus two); 2n(P-1)/P
// elements sent, the least possible, for P a power of two. Partners stand for ranks next to each other and combine in
// order of rank: the operation need not commute. One rank combines each element and the others copy it, so all get the same bits.
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
