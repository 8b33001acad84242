package plan

// RingReduceScatter adds to p what reduces the vector block by block around a ring: afterwards blocks[rank] holds the reduction
// over all ranks and the other blocks hold partial sums. Each block is reduced in a fixed order of ranks, which is not
// theirs: the operation must commute.
//
// Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
// P-1 steps; n(P-1)/P elements sent, the least possible.
func RingReduceScatter(p Plan, rank int, blocks []Range) Plan {
	size := len(blocks)
	for s := 1; s < size; s++ {
		p = append(p, Step{
			To: mod(rank+1, size), Send: blocks[mod(rank-s, size)],
			From: mod(rank-1, size), Recv: blocks[mod(rank-s-1, size)], Merge: Left,
		})
	}
	return p
}

// RingAllGather adds to p what gives every rank every block, when rank r holds blocks[r] at the start.
//
// P-1 steps; all blocks but one sent, the least possible.
func RingAllGather(p Plan, rank int, blocks []Range) Plan {
	size := len(blocks)
	for s := range size - 1 {
		p = append(p, Step{
			To: mod(rank+1, size), Send: blocks[mod(rank-s, size)],
			From: mod(rank-1, size), Recv: blocks[mod(rank-s-1, size)],
		})
	}
	return p
}

// RingAllReduce is RingReduceScatter and RingAllGather over even blocks: for long vectors. The operation must commute.
//
// 2(P-1) steps; 2n(P-1)/P elements sent, the least possible.
func RingAllReduce(rank, size, n int) Plan {
	blocks := make([]Range, size)
	for i := range blocks {
		blocks[i] = Even(n, size, i)
	}
	return RingAllGather(RingReduceScatter(nil, rank, blocks), rank, blocks)
}
