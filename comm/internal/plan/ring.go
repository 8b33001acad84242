package plan

// RingReduceScatter appends to p the plan that reduces the vector block by block around a ring. At the end blocks[rank] holds the
// reduction over all ranks, and the other blocks hold partial sums. Each block is reduced in a fixed order of ranks that begins
// somewhere else on the ring, so the operation must commute.
//
// If messages is 0, every rank sends to the next one. Otherwise one half of every block goes clockwise like this, and the other half
// counter-clockwise: each rank sends to both neighbours, and receives from both, at the same time. If a connection is slower than the
// network, that is up to twice as fast. Each half travels as so many messages, in turn with those of the other half, so that both
// directions are busy however long the blocks are.
//
// Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
// P-1 steps, or 2(P-1) for each of the messages; n(P-1)/P elements sent, the least possible.
func RingReduceScatter(p Plan, rank int, blocks []Range, messages int) Plan {
	for s := 1; s < len(blocks); s++ {
		p = ringStep(p, rank, s, blocks, Left, messages)
	}
	return p
}

// RingAllGather appends to p the plan that gives every rank every block, around a ring like that of RingReduceScatter. Rank r holds
// blocks[r] at the start. All blocks but one are sent, the least possible.
func RingAllGather(p Plan, rank int, blocks []Range, messages int) Plan {
	for s := range len(blocks) - 1 {
		p = ringStep(p, rank, s, blocks, Replace, messages)
	}
	return p
}

// RingAllReduce is RingReduceScatter and RingAllGather over even blocks. It is for long vectors. The operation must commute.
//
// 2n(P-1)/P elements sent, the least possible.
func RingAllReduce(rank, size, n, messages int) Plan {
	blocks := make([]Range, size)
	for i := range blocks {
		blocks[i] = Even(n, size, i)
	}
	return RingAllGather(RingReduceScatter(nil, rank, blocks, messages), rank, blocks, messages)
}

// ringStep appends to p the step in which ranks pass on a block, or its halves: the one that is so many positions behind their own.
func ringStep(p Plan, rank, behind int, blocks []Range, merge Merge, messages int) Plan {
	if messages == 0 {
		return append(p, passOn(rank, clockwise, behind, blocks, merge))
	}
	lower := passOn(rank, clockwise, behind, blocks, merge).part(2, 0)
	upper := passOn(rank, -clockwise, behind, blocks, merge).part(2, 1)
	for m := range messages {
		p = append(p, lower.part(messages, m), upper.part(messages, m))
	}
	return p
}

// clockwise is the direction of a ring in which ranks send to the next one.
const clockwise = 1

// passOn passes on a block in a direction of the ring.
func passOn(rank, direction, behind int, blocks []Range, merge Merge) Step {
	size := len(blocks)
	at := rank - direction*behind
	return Step{
		To: mod(rank+direction, size), Send: blocks[mod(at, size)],
		From: mod(rank-direction, size), Recv: blocks[mod(at-direction, size)], Merge: merge,
	}
}
