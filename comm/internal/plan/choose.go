package plan

import "github.com/gorun/gorun/comm/internal/choice"

// Choices makes plans by the chosen algorithms. The choice depends only on the call and on where the group's ranks are. So it is the same on
// every rank.
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

// Fits reports whether size ranks may use a way of op for so many bytes. If a tuning names one that does not fit, they use another.
func Fits(op, way string, size, bytes int) bool {
	return op != "all_reduce" || way != "pairwise" || bytes <= mostPairwiseMemory/size
}

// AllReduce returns the plan for a vector of n elements of elem bytes each. ordered says that the operation does not commute.
func (c Choices) AllReduce(rank, size, n, elem int, ordered bool) Plan {
	switch way := c.Pick("all_reduce", size, n*elem); {
	case way == "pairwise" && Fits("all_reduce", way, size, n*elem):
		return PairwiseAllReduce(rank, size, n)
	case way == "doubling" || way == "pairwise" || n < size:
		return DoublingAllReduce(rank, size, n)
	case ordered || way == "halving":
		return HalvingAllReduce(rank, size, n)
	default:
		return RingAllReduce(rank, size, n, ringMessages(way, n/size*elem))
	}
}

// AllGather appends to p the plan for collecting blocks of any lengths, of elements of elem bytes. The blocks are one vector.
func (c Choices) AllGather(p Plan, rank int, blocks []Range, elem int) Plan {
	p, _ = c.AllGatherV(p, rank, blocks, elem, choice.Any)
	return p
}

// AllGatherV is AllGather for blocks that need not be one vector. If they have to be one, because several travel as one message, it
// reports that they are to be joined. Blocks of more than mostJoined bytes never are.
func (c Choices) AllGatherV(p Plan, rank int, blocks []Range, elem, mostJoined int) (_ Plan, join bool) {
	size := len(blocks)
	longest, whole := lengths(blocks)
	way := c.Pick("all_gather", size, size*longest*elem) // blocks of different lengths take as long as if all had the longest one's
	if isPipelined(size, longest*elem, whole*elem, ringCost(size, longest*elem)) && c.mayPipeline("all_gather", size) {
		way = pipelined
	}
	join = size > 2 && whole*elem <= mostJoined
	switch {
	case way == "doubling" && join:
		return DoublingAllGather(p, rank, blocks), true
	case way == "bruck" && join:
		return BruckAllGather(p, rank, blocks), true
	case way == "pairwise":
		return PairwiseAllGather(p, rank, blocks), false
	case way == pipelined:
		return PipelinedAllGather(p, rank, blocks, unevenMessage(size, longest, elem)), false
	}
	return RingAllGather(p, rank, blocks, ringMessages(way, longest*elem)), false
}

// lengths returns the length of the longest of blocks, and that of all together.
func lengths(blocks []Range) (longest, whole int) {
	for _, b := range blocks {
		longest, whole = max(longest, b.Len()), whole+b.Len()
	}
	return longest, whole
}

// mayPipeline reports whether op goes around a ring in short messages if its blocks are such that this is faster.
func (c Choices) mayPipeline(op string, size int) bool {
	return c.Has(op, pipelined) && !c.IsTuned(op, size)
}

// isPipelined reports whether blocks, with these bytes in the longest one and in all, go around a ring in short messages clearly faster than
// in the given other time. Times are those in which so many bytes are sent.
func isPipelined(size, longest, whole, other int) bool {
	if size <= 2 {
		return false
	}
	message := unevenMessage(size, longest, 1)
	return (whole/message+size-2)*(message+messageCost)*5/4 < other
}

// ringCost is the time of a ring in both directions, at the least: that in which half of the longest block goes around it.
func ringCost(size, longest int) int { return longest + (size-2)*longest/2 + (size-1)*messageCost }

// pairwiseCost is the time of a pairwise exchange: that in which the owner of the longest block receives it.
func pairwiseCost(size, longest int) int { return (size - 1) * (longest + messageCost) }

// unevenMessage returns how many elements go in one message around a ring if one block, of so many, is much longer than the others. Then most
// ranks wait for it, as in a chain.
func unevenMessage(size, longest, elem int) int {
	k := chainMessages(size, longest*elem, messageCost)
	return max((longest+k-1)/k, 1)
}

// evenMessage returns how many elements go in one message around a ring if all blocks have about as many as the longest one. Then all ranks
// send all the time. Between eight machines at 10 Gbit/s, with blocks of 128 KiB, messages of 15 KiB reached 55 % of the rate of the links, those
// of 43 KiB 98 %, and those of 64 KiB 96 %; with blocks of 4 MiB between four, those of 64 KiB reached 84 %, and those of 380 KiB 77 %.
func evenMessage(longest, elem int) int {
	k := max((longest*elem+mostEvenMessage-1)/mostEvenMessage, 1)
	return max((longest+k-1)/k, 1)
}

// ringMessages returns in how many messages half a block of so many bytes travels around a ring, or 0 if the ring has one direction.
func ringMessages(way string, block int) int {
	if way != bothWays {
		return 0
	}
	return max(block/2/mostMessage, 1)
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
	switch way := c.Pick("broadcast", size, n*elem); way {
	case "linear":
		return LinearBroadcast(rank, size, n, root)
	case "binomial":
		return BinomialBroadcast(rank, size, n, root)
	case "scatter":
		return ScatterBroadcast(rank, size, n, root)
	default:
		return ChainBroadcast(rank, size, n, root, messagesByWay(way, size, n, elem))
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
	case way == "halving":
		return HalvingReduce(rank, size, n, root)
	default:
		return ChainReduce(rank, size, n, root, messagesByWay(way, size, n, elem))
	}
}

// messagesByWay returns in how many messages a vector goes down a chain: by pipeline in the best number, otherwise in one.
func messagesByWay(way string, size, n, elem int) int {
	if way == pipelined {
		return max(min(chainMessages(size, n*elem, messageCost), n), 1)
	}
	return 1
}

// Barrier returns the plan for a barrier.
func (c Choices) Barrier(rank, size int) Plan {
	if c.Pick("barrier", size, 0) == "pairwise" {
		return PairwiseBarrier(rank, size)
	}
	return DisseminationBarrier(rank, size)
}

// ReduceScatter appends to p the plan for a reduction of which every rank keeps a block, of elements of elem bytes. ordered says that the
// operation does not commute.
//
// If ranks combine blocks of others on the way, join is true: the plan overwrites all blocks, so it needs a buffer of all of them. Halving needs blocks
// of at most mostJoined bytes in all, one after the other.
func (c Choices) ReduceScatter(p Plan, rank int, blocks []Range, elem int, ordered bool, mostJoined int) (_ Plan, join bool) {
	size := len(blocks)
	longest, whole := lengths(blocks)
	switch {
	case ordered:
		return OrderedReduceScatter(p, rank, blocks), false
	case size == 1: // the others have no step, so the block would not get into that buffer
		return PairwiseReduceScatter(p, rank, blocks), false
	}
	way, message := c.Pick("reduce_scatter", size, size*longest*elem), evenMessage(longest, elem)
	if isPipelined(size, longest*elem, whole*elem, pairwiseCost(size, longest*elem)) && c.mayPipeline("reduce_scatter", size) {
		way, message = pipelined, unevenMessage(size, longest, elem)
	}
	switch {
	case way == pipelined:
		return PipelinedReduceScatter(p, rank, blocks, message), true
	case way == "halving" && whole*elem <= mostJoined:
		return HalvingReduceScatter(p, rank, blocks), true
	}
	return PairwiseReduceScatter(p, rank, blocks), false
}

// Together reports whether the blocks of op, all_to_all, gather or scatter, of so many bytes each, travel together by way of other ranks:
// by BruckAllToAll, BinomialGather or BinomialScatter.
func (c Choices) Together(op string, size, bytes int) bool {
	way := c.Pick(op, size, size*bytes)
	return way == "bruck" || way == "binomial"
}
