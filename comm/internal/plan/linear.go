package plan

// LinearGather appends to p the plan that collects a block from every rank at root, which gets blocks[r] from rank r.
// The other ranks know only the length n of their own block. What is sent and what is received are different vectors.
//
// Thakur, Rabenseifner and Gropp 2005, section 3 ("linear"). P-1 steps at root, 1 elsewhere. Every element is sent once
// and directly to root, so no rank needs memory for another one's block.
func LinearGather(p Plan, rank, root, n int, blocks []Range) Plan {
	own := Range{0, n}
	if rank != root {
		return append(p, Step{To: root, Send: own, From: None})
	}
	p = append(p, Step{To: root, Send: own, From: root, Recv: blocks[root]})
	for s := 1; s < len(blocks); s++ {
		from := mod(root+s, len(blocks))
		p = append(p, Step{To: None, From: from, Recv: blocks[from]})
	}
	return p
}

// LinearScatter is LinearGather in the other direction: root sends blocks[r] to rank r, which receives n elements.
func LinearScatter(p Plan, rank, root, n int, blocks []Range) Plan {
	before := len(p)
	p = LinearGather(p, rank, root, n, blocks)
	p[before:].reversed(Replace)
	return p
}

// LinearBroadcast sends the vector of root straight to every other rank. P-1 messages of root, but only one latency.
func LinearBroadcast(rank, size, n, root int) Plan {
	all := Range{0, n}
	if rank != root {
		return Plan{{To: None, From: root, Recv: all}}
	}
	var p Plan
	for s := 1; s < size; s++ {
		p = append(p, Step{To: mod(root+s, size), Send: all, From: None})
	}
	return p
}

// LinearReduce sends the vectors of all ranks straight to root, which combines them in order of rank: the operation
// need not commute. P-1 messages to root, but only one latency.
func LinearReduce(rank, size, n, root int) Plan {
	all := Range{0, n}
	if rank != root {
		return Plan{{To: root, Send: all, From: None}}
	}
	var p Plan
	for from := root - 1; from >= 0; from-- {
		p = append(p, Step{To: None, From: from, Recv: all, Merge: Left})
	}
	for from := root + 1; from < size; from++ {
		p = append(p, Step{To: None, From: from, Recv: all, Merge: Right})
	}
	return p
}
