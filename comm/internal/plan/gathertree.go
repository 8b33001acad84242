package plan

// BinomialGather collects blocks of n elements at root, up a binomial tree. Rank r holds block r at the start. It is
// for short blocks. Every rank has memory for all blocks, and root ends with every block in its place.
//
// Thakur, Rabenseifner and Gropp 2005, section 3. ceil(log2 P) steps at root, which talks to as many ranks; at most n
// P/2 elements sent. Blocks on both sides of rank 0 travel as two messages.
func BinomialGather(rank, size, n, root int) Plan {
	var p Plan
	blocks := EqualBlocks(size, n)
	me := mod(rank-root, size) // the tree is numbered from its root
	for bit := 1; bit < size; bit *= 2 {
		if me&bit != 0 {
			ranges, n := subtree(rank, me, bit, blocks)
			for _, r := range ranges[:n] {
				p = append(p, Step{To: mod(rank-bit, size), Send: r, From: None})
			}
			break
		}
		if me+bit < size {
			ranges, n := subtree(rank+bit, me+bit, bit, blocks)
			for _, r := range ranges[:n] {
				p = append(p, Step{To: None, From: mod(rank+bit, size), Recv: r})
			}
		}
	}
	return p
}

// BinomialScatter is BinomialGather in the other direction: root holds every block at the start, and rank r ends with
// block r.
func BinomialScatter(rank, size, n, root int) Plan {
	return BinomialGather(rank, size, n, root).reversed(Replace)
}

// subtree returns the blocks of at most count ranks from rank on, which is number me of its tree: n ranges.
func subtree(rank, me, count int, blocks []Range) (ranges [2]Range, n int) {
	count = min(count, len(blocks)-me)
	return blocksUpTo(rank+count-1, count, blocks)
}
