package plan

import "github.com/gorun/gorun/comm/internal/choice"

// Choices makes plans by the chosen algorithms. The choice depends only on the call and on where the group's ranks are.
// So it is the same on every rank.
type Choices struct {
	choice.Chooser
	Pieces int // in how many equal pieces a buffer is exchanged, each by a plan of its own; 0: in one
}

// NewChoices returns the choices among ways, which tuning overrules.
func NewChoices(ways choice.Table, tuning choice.Tuning) Choices {
	return Choices{Chooser: choice.Chooser{Table: ways, Tuning: tuning}}
}

// Pick returns the way of op for a piece of so many bytes: that for the whole buffer.
func (c Choices) Pick(op string, ranks, bytes int) string {
	return c.Chooser.Pick(op, ranks, bytes*max(c.Pieces, 1))
}

// Fits reports whether size ranks may use a way of op for so many bytes. If a tuning names one that does not fit, they
// use another.
func Fits(op, way string, size, bytes int) bool {
	return op != "all_reduce" || way != "pairwise" || bytes <= mostPairwiseMemory/size
}

// AllReduce returns the plan for a vector of n elements of elem bytes each. ordered says that the operation does not
// commute.
func (c Choices) AllReduce(rank, size, n, elem int, ordered bool) Plan {
	switch way := c.Pick("all_reduce", size, n*elem); {
	case way == "pairwise" && Fits("all_reduce", way, size, n*elem):
		return PairwiseAllReduce(rank, size, n)
	case way == "doubling" || way == "pairwise" || n < size:
		return DoublingAllReduce(rank, size, n)
	case ordered || way == "halving":
		return HalvingAllReduce(rank, size, n)
	default:
		return around(way, elem).AllReduce(rank, size, n)
	}
}

// AllGather appends to p the plan for collecting blocks of any lengths, of elements of elem bytes. The blocks are one
// vector.
func (c Choices) AllGather(p Plan, rank int, blocks []Range, elem int) Plan {
	p, _ = c.AllGatherV(p, rank, blocks, elem, choice.Any)
	return p
}

// AllGatherV is AllGather for blocks that need not be one vector. If they have to be one, because several travel as one
// message, it reports that they are to be joined. Blocks of more than mostJoined bytes never are.
func (c Choices) AllGatherV(p Plan, rank int, blocks []Range, elem, mostJoined int) (_ Plan, join bool) {
	size := len(blocks)
	longest, whole := lengths(blocks)
	way := c.Pick("all_gather", size, size*longest*elem) // blocks of different lengths take as long as if all had the longest one's
	join = size > 2 && whole*elem <= mostJoined
	switch {
	case way == "doubling" && join:
		return DoublingAllGather(p, rank, blocks), true
	case way == "bruck" && join:
		return BruckAllGather(p, rank, blocks), true
	case way == "pairwise":
		return PairwiseAllGather(p, rank, blocks), false
	}
	return around(way, elem).AllGather(p, rank, blocks), false
}

// lengths returns the length of the longest of blocks, and that of all together.
func lengths(blocks []Range) (longest, whole int) {
	for _, b := range blocks {
		longest, whole = max(longest, b.Len()), whole+b.Len()
	}
	return longest, whole
}

// around returns the ring of a way, for elements of elem bytes.
func around(way string, elem int) Ring {
	switch way {
	case bothWays:
		return Ring{BothWays: true, Longest: max(mostMessage/elem, 1)}
	case pipelined:
		return Ring{Longest: max(mostRingMessage/elem, 1)}
	}
	return Ring{}
}

// EqualBlocks returns size blocks of n elements.
func EqualBlocks(size, n int) []Range {
	blocks := make([]Range, size)
	for i := range blocks {
		blocks[i] = Range{i * n, (i + 1) * n}
	}
	return blocks
}

// Broadcast returns the plan for a vector of n elements of elem bytes each.
func (c Choices) Broadcast(rank, size, n, elem, root int) Plan {
	switch c.Pick("broadcast", size, n*elem) {
	case "linear":
		return LinearBroadcast(rank, size, n, root)
	case "binomial":
		return BinomialBroadcast(rank, size, n, root)
	default:
		return ChainBroadcast(rank, size, n, root, chainMessages(size, n, elem))
	}
}

// Reduce returns the plan for a reduction to root.
func (c Choices) Reduce(rank, size, n, elem, root int, ordered bool) Plan {
	switch way := c.Pick("reduce", size, n*elem); {
	case way == "linear":
		return LinearReduce(rank, size, n, root)
	case ordered:
		return OrderedReduce(rank, size, n, root)
	case way == "binomial":
		return BinomialReduce(rank, size, n, root)
	default:
		return ChainReduce(rank, size, n, root, chainMessages(size, n, elem))
	}
}

// Barrier returns the plan for a barrier.
func (c Choices) Barrier(rank, size int) Plan {
	if c.Pick("barrier", size, 0) == "pairwise" {
		return PairwiseBarrier(rank, size)
	}
	return DisseminationBarrier(rank, size)
}

// ReduceScatter appends to p the plan for a reduction of which every rank keeps a block, of elements of elem bytes.
// ordered says that the operation does not commute.
//
// If ranks combine blocks of others on the way, join is true: the plan overwrites all blocks, so it needs a buffer of
// all of them. Halving needs blocks of at most mostJoined bytes in all, one after the other.
func (c Choices) ReduceScatter(p Plan, rank int, blocks []Range, elem int, ordered bool, mostJoined int) (_ Plan, join bool) {
	size := len(blocks)
	longest, whole := lengths(blocks)
	switch {
	case ordered:
		return OrderedReduceScatter(p, rank, blocks), false
	case size == 1: // the others have no step, so the block would not get into that buffer
		return PairwiseReduceScatter(p, rank, blocks), false
	}
	way := c.Pick("reduce_scatter", size, size*longest*elem)
	switch {
	case way == pipelined:
		return around(way, elem).ReduceScatter(p, rank, blocks), true
	case way == "halving" && whole*elem <= mostJoined:
		return HalvingReduceScatter(p, rank, blocks), true
	}
	return PairwiseReduceScatter(p, rank, blocks), false
}

// Together reports whether the blocks of op, all_to_all, gather or scatter, of so many bytes each, travel together by
// way of other ranks: by BruckAllToAll, BinomialGather or BinomialScatter.
func (c Choices) Together(op string, size, bytes int) bool {
	way := c.Pick(op, size, size*bytes)
	return way == "bruck" || way == "binomial"
}
