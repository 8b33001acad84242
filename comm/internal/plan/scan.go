package plan

// DoublingScan leaves on every rank the reduction over the ranks up to and including it, in order of rank.
//
// Hillis and Steele, "Data parallel algorithms", 1986. ceil(log2 P) steps; at most n log2 P elements sent.
func DoublingScan(rank, size, n int) Plan {
	var p Plan
	for d := 1; d < size; d *= 2 {
		p = append(p, shift(rank, size, n, d, Left))
	}
	return p
}

// DoublingExScan leaves on every rank but 0 the reduction over the ranks below it: a DoublingScan, moved up by one.
// Rank 0 keeps its vector.
//
// One step more than DoublingScan.
func DoublingExScan(rank, size, n int) Plan {
	return append(DoublingScan(rank, size, n), shift(rank, size, n, 1, Swap))
}

// shift sends the vector to the rank that is d higher, if there is one.
func shift(rank, size, n, d int, merge Merge) Step {
	s := Step{To: None, From: None, Merge: merge}
	if rank+d < size {
		s.To, s.Send = rank+d, Range{0, n}
	}
	if rank >= d {
		s.From, s.Recv = rank-d, Range{0, n}
	}
	return s
}
