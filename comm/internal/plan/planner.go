package plan

import (
	"math"

	"github.com/gorun/gorun/comm/internal/choice"
)

// A Planner makes plans by the algorithms that its Chooser chooses.
type Planner struct {
	choice.Chooser
	Pieces int // in how many equal pieces a buffer is exchanged, each by a plan of its own; 0: in one
}

// NewPlanner returns the planner of ranks that choose by table, which tuning overrules.
func NewPlanner(table *choice.Table, tuning choice.Tuning) Planner {
	return Planner{Chooser: choice.Chooser{Table: table, Tuning: tuning}}
}

// choose returns the algorithm of op for a piece of so many bytes. The size of the whole buffer decides.
func (c Planner) choose(op string, ranks, bytes int) choice.Algorithm {
	return c.Choose(op, ranks, bytes*max(c.Pieces, 1))
}

// AllReduce returns the plan for a vector of n elements of elem bytes each. ordered says that the operation does not
// commute.
func (c Planner) AllReduce(rank, size, n, elem int, ordered bool) Plan {
	switch way := c.choose("all_reduce", size, n*elem); {
	case way == choice.Pairwise:
		return PairwiseAllReduce(rank, size, n)
	case way == choice.Doubling || n < size:
		return DoublingAllReduce(rank, size, n)
	case ordered || way == choice.Halving:
		return HalvingAllReduce(rank, size, n)
	default:
		return c.around(way, elem).AllReduce(rank, size, n)
	}
}

// AllGather appends to p the plan for collecting blocks of any lengths, of elements of elem bytes. The blocks are one
// vector.
func (c Planner) AllGather(p Plan, rank int, blocks []Range, elem int) Plan {
	p, _ = c.AllGatherV(p, rank, blocks, elem, choice.Any)
	return p
}

// AllGatherV is AllGather for blocks that need not be one vector. If they have to be one, because several travel as one
// message, it reports that they are to be joined. Blocks of more than mostJoined bytes never are.
func (c Planner) AllGatherV(p Plan, rank int, blocks []Range, elem, mostJoined int) (_ Plan, join bool) {
	size := len(blocks)
	longest, whole := lengths(blocks)
	way := c.choose("all_gather", size, size*longest*elem) // blocks of different lengths take as long as if all had the longest one's
	join = size > 2 && whole*elem <= mostJoined
	switch {
	case way == choice.Doubling && join:
		return DoublingAllGather(p, rank, blocks), true
	case way == choice.Bruck && join:
		return BruckAllGather(p, rank, blocks), true
	case way == choice.Pairwise:
		return PairwiseAllGather(p, rank, blocks), false
	}
	return c.around(way, elem).AllGather(p, rank, blocks), false
}

// lengths returns the length of the longest of blocks, and that of all together.
func lengths(blocks []Range) (longest, whole int) {
	for _, b := range blocks {
		longest, whole = max(longest, b.Len()), whole+b.Len()
	}
	return longest, whole
}

// around returns the ring of a way, for elements of elem bytes. In both directions, ranks send no more than MostOneWay ahead
// of what they receive, so one direction never waits for the other.
func (c Planner) around(way choice.Algorithm, elem int) Ring {
	switch way {
	case choice.Bidirectional:
		return Ring{BothWays: true, Longest: max(c.MostOneWay/elem, 1)}
	case choice.Pipeline:
		return Ring{Longest: max(c.RingMessage/elem, 1)}
	default:
		return Ring{}
	}
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
func (c Planner) Broadcast(rank, size, n, elem, root int) Plan {
	switch c.choose("broadcast", size, n*elem) {
	case choice.Linear:
		return LinearBroadcast(rank, size, n, root)
	case choice.Binomial:
		return BinomialBroadcast(rank, size, n, root)
	default:
		return ChainBroadcast(rank, size, n, root, chainMessages(size, n, elem))
	}
}

// Reduce returns the plan for a reduction to root.
func (c Planner) Reduce(rank, size, n, elem, root int, ordered bool) Plan {
	switch way := c.choose("reduce", size, n*elem); {
	case way == choice.Linear:
		return LinearReduce(rank, size, n, root)
	case ordered:
		return OrderedReduce(rank, size, n, root)
	case way == choice.Binomial:
		return BinomialReduce(rank, size, n, root)
	default:
		return ChainReduce(rank, size, n, root, chainMessages(size, n, elem))
	}
}

// Barrier returns the plan for a barrier.
func (c Planner) Barrier(rank, size int) Plan {
	if c.choose("barrier", size, 0) == choice.Pairwise {
		return PairwiseBarrier(rank, size)
	}
	return DisseminationBarrier(rank, size)
}

// ReduceScatter appends to p the plan for a reduction of which every rank keeps a block, of elements of elem bytes.
// ordered says that the operation does not commute.
//
// If ranks combine blocks of others on the way, join is true: the plan overwrites all blocks, so it needs a buffer of
// all of them. Halving needs blocks of at most mostJoined bytes in all, one after the other.
func (c Planner) ReduceScatter(p Plan, rank int, blocks []Range, elem int, ordered bool, mostJoined int) (_ Plan, join bool) {
	size := len(blocks)
	longest, whole := lengths(blocks)
	switch {
	case ordered:
		return OrderedReduceScatter(p, rank, blocks), false
	case size == 1: // the others have no step, so the block would not get into that buffer
		return PairwiseReduceScatter(p, rank, blocks), false
	}
	way := c.choose("reduce_scatter", size, size*longest*elem)
	switch {
	case way == choice.Pipeline:
		return c.around(way, elem).ReduceScatter(p, rank, blocks), true
	case way == choice.Halving && whole*elem <= mostJoined:
		return HalvingReduceScatter(p, rank, blocks), true
	}
	return PairwiseReduceScatter(p, rank, blocks), false
}

// AllToAll returns the plan for blocks of n elements of elem bytes. It has no root.
func (c Planner) AllToAll(rank, size, n, elem, _ int) Plan {
	if c.choose("all_to_all", size, size*n*elem) == choice.Bruck {
		return BruckAllToAll(rank, size, n)
	}
	blocks := EqualBlocks(size, n)
	return PairwiseAllToAll(nil, rank, blocks, blocks)
}

// Gather returns the plan that collects blocks of n elements of elem bytes at root.
func (c Planner) Gather(rank, size, n, elem, root int) Plan {
	if c.choose("gather", size, size*n*elem) == choice.Binomial {
		return BinomialGather(rank, size, n, root)
	}
	return LinearGather(nil, rank, root, n, EqualBlocks(size, n))
}

// Scatter is Gather in the other direction.
func (c Planner) Scatter(rank, size, n, elem, root int) Plan {
	if c.choose("scatter", size, size*n*elem) == choice.Binomial {
		return BinomialScatter(rank, size, n, root)
	}
	return LinearScatter(nil, rank, root, n, EqualBlocks(size, n))
}

// chainMessages returns in how many messages a vector of n elements of elem bytes each goes down a chain fastest. In k
// messages of m bytes it takes k+P-2 times as long as one, which is as long as to send m+choice.MessageCost bytes.
func chainMessages(ranks, n, elem int) int {
	k := int(math.Sqrt(float64(n*elem) * float64(max(ranks-2, 0)) / choice.MessageCost))
	return max(min(k, n), 1)
}
