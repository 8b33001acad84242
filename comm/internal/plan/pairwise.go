package plan

// PairwiseReduceScatter gives rank the reduction of blocks[rank]: every rank sends each block straight to its
// owner. Only blocks[rank] is written, so what is sent and what is received may be different vectors.
//
// Thakur, Rabenseifner and Gropp 2005, section 4.4 ("pairwise exchange"). P-1 steps; n(P-1)/P elements sent, the
// least possible.
func PairwiseReduceScatter(rank int, blocks []Range) Plan {
	size := len(blocks)
	var p Plan
	for s := 1; s < size; s++ {
		to := mod(rank+s, size)
		p = append(p, Step{
			To: to, Send: blocks[to],
			From: mod(rank-s, size), Recv: blocks[rank], Reduce: true,
		})
	}
	return p
}
