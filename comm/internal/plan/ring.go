package plan

// A direction is that of a ring. Clockwise, ranks send to the next one.
type direction int

const (
	clockwise        direction = 1
	counterclockwise direction = -1
)

// RingReduceScatter appends to p the plan that reduces the vector block by block around a ring. At the end blocks[rank] holds the
// reduction over all ranks, and the other blocks hold partial sums. Each block is reduced in a fixed order of ranks that begins
// somewhere else on the ring, so the operation must commute.
//
// Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
// P-1 steps; n(P-1)/P elements sent, the least possible.
func RingReduceScatter(p Plan, rank int, blocks []Range) Plan {
	for s := 1; s < len(blocks); s++ {
		p = append(p, clockwise.step(rank, s, blocks, Left))
	}
	return p
}

// RingAllGather appends to p the plan that gives every rank every block. Rank r holds blocks[r] at the start.
//
// P-1 steps; all blocks but one sent, the least possible.
func RingAllGather(p Plan, rank int, blocks []Range) Plan {
	for s := range len(blocks) - 1 {
		p = append(p, clockwise.step(rank, s, blocks, Replace))
	}
	return p
}

// RingAllReduce is RingReduceScatter and RingAllGather over even blocks. It is for long vectors. The operation must commute.
//
// 2(P-1) steps; 2n(P-1)/P elements sent, the least possible.
func RingAllReduce(rank, size, n int) Plan {
	blocks := evenBlocks(size, n)
	return RingAllGather(RingReduceScatter(nil, rank, blocks), rank, blocks)
}

// BidirectionalReduceScatter is RingReduceScatter of one half of every block clockwise, and of the other half counter-clockwise. Each
// rank sends to both neighbours, and receives from both, at the same time. If a connection is slower than the network, that is up to
// twice as fast.
//
// Each half travels as so many messages, in turn with those of the other half, so that both directions are busy however long the blocks
// are.
//
// 2(P-1) steps for each of these messages; n(P-1)/P elements sent.
func BidirectionalReduceScatter(p Plan, rank int, blocks []Range, messages int) Plan {
	for s := 1; s < len(blocks); s++ {
		p = bothWaysStep(p, rank, s, blocks, Left, messages)
	}
	return p
}

// BidirectionalAllGather is RingAllGather in both directions, like BidirectionalReduceScatter.
func BidirectionalAllGather(p Plan, rank int, blocks []Range, messages int) Plan {
	for s := range len(blocks) - 1 {
		p = bothWaysStep(p, rank, s, blocks, Replace, messages)
	}
	return p
}

// BidirectionalAllReduce is both over even blocks.
func BidirectionalAllReduce(rank, size, n, messages int) Plan {
	blocks := evenBlocks(size, n)
	return BidirectionalAllGather(BidirectionalReduceScatter(nil, rank, blocks, messages), rank, blocks, messages)
}

// step passes on the block that is so many positions behind rank's own.
func (d direction) step(rank, behind int, blocks []Range, merge Merge) Step {
	size, one := len(blocks), int(d)
	at := rank - one*behind
	return Step{
		To: mod(rank+one, size), Send: blocks[mod(at, size)],
		From: mod(rank-one, size), Recv: blocks[mod(at-one, size)], Merge: merge,
	}
}

// bothWaysStep appends to p the step of one half of a block clockwise, and of the other half counter-clockwise.
func bothWaysStep(p Plan, rank, behind int, blocks []Range, merge Merge, messages int) Plan {
	lower := clockwise.step(rank, behind, blocks, merge).part(2, 0)
	upper := counterclockwise.step(rank, behind, blocks, merge).part(2, 1)
	for m := range messages {
		p = append(p, lower.part(messages, m), upper.part(messages, m))
	}
	return p
}
