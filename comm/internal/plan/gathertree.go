package plan

// BinomialGather collects blocks of n elements at root, up a binomial tree. Rank r holds block r at the start. It is for short blocks.
// Every rank has memory for all blocks, and root ends with every block in its place.
//
// Thakur, Rabenseifner and Gropp 2005, section 3. ceil(log2 P) steps at root, which talks to as many ranks; at most n P/2
// elements sent. Blocks on both sides of rank 0 travel as two messages.
func BinomialGather(rank, size, n, root int) Plan {
	var p Plan
	me := mod(rank-root, size) // the tree is numbered from its root
	for bit := 1; bit < size; bit *= 2 {
		if me&bit != 0 {
			for _, blocks := range subtree(rank, me, bit, size, n) {
				p = append(p, Step{To: mod(rank-bit, size), Send: blocks, From: None})
			}
			break
		}
		if me+bit < size {
			for _, blocks := range subtree(rank+bit, me+bit, bit, size, n) {
				p = append(p, Step{To: None, From: mod(rank+bit, size), Recv: blocks})
			}
		}
	}
	return p
}

// BinomialScatter is BinomialGather in the other direction: root holds every block at the start, and rank r ends with block r.
func BinomialScatter(rank, size, n, root int) Plan {
	return BinomialGather(rank, size, n, root).reversed(Replace)
}

// subtree returns the blocks of at most count ranks from rank on, which is number me of its tree.
func subtree(rank, me, count, size, n int) []Range {
	count = min(count, size-me)
	return blocksUpTo(rank+count-1, count, size, n)
}
