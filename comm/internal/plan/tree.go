package plan

// BinomialBroadcast sends the vector of root down a binomial tree.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.2. ceil(log2 P) steps; at most n log2 P elements sent.
func BinomialBroadcast(rank, size, n, root int) Plan {
	all := Range{0, n}
	var p Plan
	me := mod(rank-root, size) // the tree is numbered from its root
	bit := 1
	for ; bit < size; bit *= 2 {
		if me&bit != 0 {
			p = append(p, Step{To: None, From: mod(rank-bit, size), Recv: all})
			break
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if me+bit < size {
			p = append(p, Step{To: mod(rank+bit, size), Send: all, From: None})
		}
	}
	return p
}

// BinomialReduce combines the vectors of all ranks up a binomial tree, a BinomialBroadcast backwards; root ends with
// the result, the other ranks with partial sums. Unless root is 0 the operation must commute.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.6. ceil(log2 P) steps; n elements sent.
func BinomialReduce(rank, size, n, root int) Plan {
	p := BinomialBroadcast(rank, size, n, root).reversed(Right)
	if len(p) > 0 {
		p[0].SendsInput, p[0].MergesInput = p[0].To != None, p[0].From != None
	}
	return p
}

// OrderedReduce combines the vectors of all ranks in order of rank, in a tree below rank 0, which sends the result to
// root. It is for operations that do not commute.
//
// One step more than BinomialReduce.
func OrderedReduce(rank, size, n, root int) Plan {
	all := Range{0, n}
	p := BinomialReduce(rank, size, n, 0)
	switch {
	case root == 0:
	case rank == 0:
		p = append(p, Step{To: root, Send: all, From: None})
	case rank == root:
		p = append(p, Step{To: None, From: 0, Recv: all})
	}
	return p
}
