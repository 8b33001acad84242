package plan

import (
	"math/bits"
	"slices"

	"github.com/gorun/gorun/comm/internal/choice"
)

// ChunkSize is the length in bytes of the pieces in which messages travel. Long ones cost fewer calls of the system, and let ranks
// that share a processor go on for longer; what combines them finds them in a cache still.
const ChunkSize = 1 << 20

// mostMessage is the length in bytes of what goes in one direction of a ring before something goes in the other one: no
// more than ranks send ahead of what they receive, or one direction would wait for the other.
const mostMessage = 2 * ChunkSize

// shortBlock is the length in bytes up to which blocks better travel together, by way of other ranks, than each straight to
// where it belongs.
const shortBlock = 256

// manyRanks is the number of ranks from which that holds if the blocks are all for one rank, or all from one: it then talks
// to a few ranks instead of to all.
const manyRanks = 17

// The ways round a ring.
const (
	oneWay   = "ring"
	bothWays = "bidirectional"
)

// Ways are those of this package, for bytes of the whole vector; of "nodes" is how several nodes exchange what each has made in
// memory.
var Ways = choice.Table{
	{Op: "all_reduce", Way: "doubling", UpTo: fewSteps, What: "recursive doubling: fewest steps, whole vectors"},
	{Op: "all_reduce", Way: "halving", UpTo: limit(1 << 20), What: "recursive halving and doubling: fewest bytes, few steps"},
	{Op: "all_reduce", Way: oneWay, UpTo: ofTwo, What: "ring reduce-scatter and all-gather: fewest bytes, between neighbours only"},
	{Op: "all_reduce", Way: bothWays, What: "ring in both directions, with half of the vector each"},
	{Op: "reduce", Way: "binomial", UpTo: treeLimit, What: "binomial tree"},
	{Op: "reduce", Way: "chain", What: "pipeline from neighbour to neighbour"},
	{Op: "broadcast", Way: "binomial", UpTo: treeLimit, What: "binomial tree"},
	{Op: "broadcast", Way: "chain", What: "pipeline from neighbour to neighbour"},
	{Op: "all_gather", Way: "bruck", UpTo: limit(80 << 10), What: "Bruck: fewest steps"},
	{Op: "all_gather", Way: oneWay, UpTo: ofTwo, What: "ring: between neighbours only"},
	{Op: "all_gather", Way: bothWays, What: "ring in both directions, with half of every block each"},
	{Op: "reduce_scatter", Way: "pairwise", What: "pairwise exchange: each block straight to its owner"},
	{Op: "all_to_all", Way: "bruck", UpTo: shortBlocks(4), What: "Bruck: blocks travel together, by way of other ranks"},
	{Op: "all_to_all", Way: "pairwise", What: "pairwise exchange: each block straight to where it belongs"},
	{Op: "gather", Way: "binomial", UpTo: shortBlocks(manyRanks), What: "binomial tree: blocks travel together"},
	{Op: "gather", Way: "linear", What: "each block straight to root"},
	{Op: "scatter", Way: "binomial", UpTo: shortBlocks(manyRanks), What: "binomial tree: blocks travel together"},
	{Op: "scatter", Way: "linear", What: "each block straight from root"},
	{Op: "barrier", Way: "dissemination", What: "dissemination: over distances that double"},
	{Op: "nodes", Way: "leaders", UpTo: limit(64 << 10), What: "one rank of each node carries the vector: each message has a cost of its own"},
	{Op: "nodes", Way: "rails", What: "every rank of a node carries its slice of the vector"},
	{Op: "scan", Way: "doubling", What: "recursive doubling, in order of rank"},
}

// WaysNearby are those of ranks that are all on one machine: what they send shares no network, only processors, to which two
// directions are more work than one.
var WaysNearby = nearby(Ways)

func nearby(ways choice.Table) choice.Table {
	near := slices.Clone(ways)
	for i := range near {
		if near[i].Way == oneWay {
			near[i].UpTo = nil
		}
	}
	return near
}

func limit(bytes int) func(int) int { return func(int) int { return bytes } }

// ofTwo is for two ranks, to whom both directions are one.
func ofTwo(ranks int) int {
	if ranks == 2 {
		return choice.Any
	}
	return choice.Never
}

// fewSteps is the length of an all-reduce up to which fewer steps beat fewer bytes. Two ranks send as many bytes either way.
func fewSteps(ranks int) int {
	if ranks == 2 {
		return 256 << 10
	}
	return 64 << 10
}

// shortBlocks is the length of short blocks for every rank, if there are so many.
func shortBlocks(from int) func(int) int {
	return func(ranks int) int {
		if ranks < from {
			return choice.Never
		}
		return ranks * shortBlock
	}
}

// treeLimit is the length from which on the last piece is sooner at the other end of a chain than out of the root of a tree,
// which sends each several times.
func treeLimit(ranks int) int {
	depth := bits.Len(uint(ranks - 1))
	if depth <= 1 {
		return choice.Any
	}
	return ((ranks-2)/(depth-1) + 1) * ChunkSize
}

// Choices makes plans by the ways that are chosen. The choice depends on nothing but the call and where the group's ranks are, so
// every rank makes the same.
type Choices struct{ choice.Chooser }

// NewChoices are those of ways, which tuning overrules.
func NewChoices(ways choice.Table, tuning choice.Tuning) Choices {
	return Choices{choice.Chooser{Table: ways, Tuning: tuning}}
}

// AllReduce is the plan for a vector of n elements of elem bytes each; ordered says that the operation does not commute.
func (c Choices) AllReduce(rank, size, n, elem int, ordered bool) Plan {
	switch way := c.Pick("all_reduce", size, n*elem); {
	case n < size || way == "doubling":
		return DoublingAllReduce(rank, size, n)
	case ordered || way == "halving":
		return HalvingAllReduce(rank, size, n)
	case way == bothWays:
		return BidirectionalAllReduce(rank, size, n, messages(n/size*elem))
	}
	return RingAllReduce(rank, size, n)
}

// AllGather is the plan for collecting blocks of n elements of elem bytes each.
func (c Choices) AllGather(rank, size, n, elem int) Plan {
	switch c.Pick("all_gather", size, size*n*elem) {
	case "bruck":
		return BruckAllGather(rank, size, n)
	case bothWays:
		return BidirectionalAllGather(nil, rank, EqualBlocks(size, n), messages(n*elem))
	}
	return RingAllGather(nil, rank, EqualBlocks(size, n))
}

// AllGatherV is the plan for collecting blocks of any lengths.
func (c Choices) AllGatherV(rank int, blocks []Range, elem int) Plan {
	n := blocks[0].Len()
	if slices.Equal(blocks, EqualBlocks(len(blocks), n)) {
		return c.AllGather(rank, len(blocks), n, elem)
	}
	return c.AllGatherApart(nil, rank, blocks, elem)
}

// AllGatherApart adds to p AllGatherV of blocks that need not be one vector: each travels by itself.
func (c Choices) AllGatherApart(p Plan, rank int, blocks []Range, elem int) Plan {
	longest, whole := 0, 0
	for _, b := range blocks {
		longest, whole = max(longest, b.Len()), whole+b.Len()
	}
	if c.Pick("all_gather", len(blocks), whole*elem) == bothWays {
		return BidirectionalAllGather(p, rank, blocks, messages(longest*elem))
	}
	return RingAllGather(p, rank, blocks)
}

// messages is in how many messages half a block of so many bytes travels.
func messages(block int) int { return max(block/2/mostMessage, 1) }

// EqualBlocks are size blocks of n elements.
func EqualBlocks(size, n int) []Range {
	blocks := make([]Range, size)
	for i := range blocks {
		blocks[i] = Range{i * n, (i + 1) * n}
	}
	return blocks
}

// Broadcast is the plan for a vector of n elements of elem bytes each.
func (c Choices) Broadcast(rank, size, n, elem, root int) Plan {
	if c.Pick("broadcast", size, n*elem) == "chain" {
		return ChainBroadcast(rank, size, n, root)
	}
	return BinomialBroadcast(rank, size, n, root)
}

// Reduce is the plan for a reduction to root.
func (c Choices) Reduce(rank, size, n, elem, root int, ordered bool) Plan {
	switch {
	case ordered:
		return OrderedReduce(rank, size, n, root)
	case c.Pick("reduce", size, n*elem) == "chain":
		return ChainReduce(rank, size, n, root)
	}
	return BinomialReduce(rank, size, n, root)
}

// ReduceScatter adds to p the plan for a reduction of which every rank keeps a block.
func ReduceScatter(p Plan, rank int, blocks []Range, ordered bool) Plan {
	if ordered {
		return OrderedReduceScatter(p, rank, blocks)
	}
	return PairwiseReduceScatter(p, rank, blocks)
}

// TogetherAllToAll reports whether an all-to-all of blocks of so many bytes is one for BruckAllToAll.
func (c Choices) TogetherAllToAll(size, bytes int) bool {
	return c.Pick("all_to_all", size, size*bytes) == "bruck"
}

// TogetherGather and TogetherScatter say whether such blocks are some for BinomialGather or BinomialScatter.
func (c Choices) TogetherGather(size, bytes int) bool {
	return c.Pick("gather", size, size*bytes) == "binomial"
}

// TogetherScatter is TogetherGather the other way.
func (c Choices) TogetherScatter(size, bytes int) bool {
	return c.Pick("scatter", size, size*bytes) == "binomial"
}
