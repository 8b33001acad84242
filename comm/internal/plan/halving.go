package plan

// HalvingAllReduce cuts the vector in two again and again: ranks whose numbers differ in one bit exchange the half that the
// other one goes on with, until each has reduced a piece of its own, and then give it back the same way: for vectors of
// middle length. When size is no power of two, the first ranks fold into their neighbours before and are served after.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.5 ("Rabenseifner's algorithm"). 2 log2 P steps (plus two); 2n(P-1)/P
// elements sent, the least possible, for P a power of two. Partners stand for ranks next to each other and combine in
// order of rank: the operation need not commute. Every element is combined by one rank and copied by the others, which so
// get the same bits.
func HalvingAllReduce(rank, size, n int) Plan {
	return folded(rank, size, n, func(me, core int, partner func(bit int) int) Plan {
		var apart, together Plan
		mine := Range{0, n}
		for bit := 1; bit < core; bit *= 2 {
			middle := (mine.Lo + mine.Hi) / 2
			keep, give := Range{mine.Lo, middle}, Range{middle, mine.Hi}
			if me&bit != 0 {
				keep, give = give, keep
			}
			to := partner(bit)
			apart = append(apart, Step{To: to, Send: give, From: to, Recv: keep, Merge: fromSide(me, bit)})
			together = append(together, Step{To: to, Send: keep, From: to, Recv: give})
			mine = keep
		}
		for i := len(together) - 1; i >= 0; i-- {
			apart = append(apart, together[i])
		}
		return apart
	})
}
