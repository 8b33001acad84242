package plan

// BruckAllGather gives every rank every block of n elements. Rank r holds block r at the start. It is for short blocks. Over distances
// that double, every rank passes on the blocks that it has, which are those of the ranks before it.
//
// Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing
// systems", 1997; here without its rotation, so that blocks on both sides of rank 0 travel as two messages. ceil(log2 P)
// distances; all blocks but one sent, the least possible.
func BruckAllGather(rank, size, n int) Plan {
	var p Plan
	for d := 1; d < size; d *= 2 {
		count := min(d, size-d)
		out, in := blocksUpTo(rank, count, size, n), blocksUpTo(rank-d, count, size, n)
		for i := range max(len(out), len(in)) {
			s := Step{To: None, From: None}
			if i < len(out) {
				s.To, s.Send = mod(rank+d, size), out[i]
			}
			if i < len(in) {
				s.From, s.Recv = mod(rank-d, size), in[i]
			}
			p = append(p, s)
		}
	}
	return p
}

// blocksUpTo returns the last count blocks of n elements up to that of rank, around the ring of ranks: one range, or two.
func blocksUpTo(rank, count, size, n int) []Range {
	first, last := mod(rank-count+1, size), mod(rank, size)
	if first <= last {
		return []Range{{first * n, (last + 1) * n}}
	}
	return []Range{{first * n, size * n}, {0, (last + 1) * n}}
}
