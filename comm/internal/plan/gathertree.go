package plan

// BinomialGather collects a block of n elements from every rank at root, up a binomial tree. It is for short blocks. What
// is sent and what is received are different vectors. A rank that passes on blocks has them in scratch memory.
//
// Thakur, Rabenseifner and Gropp 2005, section 3. ceil(log2 P) steps at root, which talks to as many ranks; at most n
// P/2 elements sent. Blocks on both sides of rank 0 travel as two messages.
func BinomialGather(rank, size, n, root int) Plan {
	var p Plan
	blocks, own := EqualBlocks(size, n), Range{0, n}
	if rank != root { // a BinomialScatter leaves its result before
		for i := range blocks {
			blocks[i] = Range{blocks[i].Lo + n, blocks[i].Hi + n}
		}
	}
	me := mod(rank-root, size) // the tree is numbered from its root
	isLeaf := me%2 == 1 || me == size-1 && me > 0
	if !isLeaf {
		p = append(p, Step{To: rank, Send: own, From: rank, Recv: blocks[rank]})
	}
	for bit := 1; bit < size; bit *= 2 {
		if me&bit != 0 && isLeaf {
			p = append(p, Step{To: mod(rank-bit, size), Send: own, From: None})
			break
		}
		if me&bit != 0 {
			ranges, n := subtree(rank, me, bit, blocks)
			for _, r := range ranges[:n] {
				p = append(p, Step{To: mod(rank-bit, size), Send: r, From: None, Forwards: true})
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

// BinomialScatter is BinomialGather in the other direction.
func BinomialScatter(rank, size, n, root int) Plan {
	p := BinomialGather(rank, size, n, root).reversed(Replace)
	for i := range p {
		p[i].Forwards = p[i].To != None && rank != root
	}
	return p
}

// subtree returns the blocks of at most count ranks from rank on, which is number me of its tree: n ranges.
func subtree(rank, me, count int, blocks []Range) (ranges [2]Range, n int) {
	count = min(count, len(blocks)-me)
	return blocksUpTo(rank+count-1, count, blocks)
}
