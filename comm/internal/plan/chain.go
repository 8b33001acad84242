package plan

// ChainBroadcast passes the vector of root from neighbour to neighbour. It is for long vectors, which travel in chunks.
//
// Known as the pipeline, for example from Träff, Ripke, Siebert, Balaji, Thakur and Gropp, "A pipelined algorithm for large,
// irregular all-gather problems", 2010. P-1 steps, which overlap for different chunks: the last of k chunks arrives after k+P-2 times
// the time of one. At most n elements sent, the least possible.
func ChainBroadcast(rank, size, n, root int) Plan {
	all := Range{0, n}
	var p Plan
	me := mod(rank-root, size) // the chain is numbered from its root
	if me > 0 {
		p = append(p, Step{To: None, From: mod(rank-1, size), Recv: all})
	}
	if me < size-1 {
		p = append(p, Step{To: mod(rank+1, size), Send: all, From: None})
	}
	return p
}

// ChainReduce combines the vectors of all ranks from neighbour to neighbour towards root, which gets the result. It is for long vectors,
// which travel in chunks. The other ranks end with partial sums. The operation must commute.
//
// ChainBroadcast backwards, at the same cost. Every element of a rank but the last one's is combined once.
func ChainReduce(rank, size, n, root int) Plan {
	return ChainBroadcast(rank, size, n, root).reversed(Right)
}
