package plan

import (
	"math/bits"
	"slices"

	"github.com/gorun/gorun/comm/internal/choice"
)

// Piece is the length in bytes of the pieces in which messages travel. Long ones cost fewer calls of the system, and let ranks
// that share a processor go on for longer; what combines them finds them in a cache still.
const Piece = 1 << 20

// shortBlock is the length in bytes up to which blocks better travel together, by way of other ranks, than each straight to
// where it belongs.
const shortBlock = 256

// manyRanks is the number of ranks from which that holds if the blocks are all for one rank, or all from one: it then talks
// to a few ranks instead of to all.
const manyRanks = 17

// Ways are those of this package, for bytes of the whole vector; of "nodes" is how several nodes exchange what each has made in
// memory.
var Ways = choice.Table{
	{Op: "all_reduce", Way: "doubling", UpTo: fewSteps, What: "recursive doubling: fewest steps, whole vectors"},
	{Op: "all_reduce", Way: "halving", UpTo: limit(1 << 20), What: "recursive halving and doubling: fewest bytes, few steps"},
	{Op: "all_reduce", Way: "ring", What: "ring reduce-scatter and all-gather: fewest bytes, between neighbours only"},
	{Op: "reduce", Way: "binomial", UpTo: treeLimit, What: "binomial tree"},
	{Op: "reduce", Way: "chain", What: "pipeline from neighbour to neighbour"},
	{Op: "broadcast", Way: "binomial", UpTo: treeLimit, What: "binomial tree"},
	{Op: "broadcast", Way: "chain", What: "pipeline from neighbour to neighbour"},
	{Op: "all_gather", Way: "bruck", UpTo: limit(80 << 10), What: "Bruck: fewest steps"},
	{Op: "all_gather", Way: "ring", What: "ring: between neighbours only"},
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

func limit(bytes int) func(int) int { return func(int) int { return bytes } }

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
	return ((ranks-2)/(depth-1) + 1) * Piece
}

// Choices makes plans by the ways that are chosen. The choice depends on nothing but the call, so every rank makes the same.
type Choices struct{ choice.Chooser }

// NewChoices are those of Ways, which tuning overrules.
func NewChoices(tuning choice.Tuning) Choices {
	return Choices{choice.Chooser{Table: Ways, Tuning: tuning}}
}

// AllReduce is the plan for a vector of n elements of elem bytes each; ordered says that the operation does not commute.
func (c Choices) AllReduce(rank, size, n, elem int, ordered bool) Plan {
	switch way := c.Pick("all_reduce", size, n*elem); {
	case n < size || way == "doubling":
		return DoublingAllReduce(rank, size, n)
	case ordered || way == "halving":
		return HalvingAllReduce(rank, size, n)
	}
	return RingAllReduce(rank, size, n)
}

// AllGather is the plan for collecting blocks of n elements of elem bytes each.
func (c Choices) AllGather(rank, size, n, elem int) Plan {
	if c.Pick("all_gather", size, size*n*elem) == "bruck" {
		return BruckAllGather(rank, size, n)
	}
	return RingAllGather(nil, rank, equal(size, n))
}

// AllGatherV is the plan for collecting blocks of any lengths.
func (c Choices) AllGatherV(rank int, blocks []Range, elem int) Plan {
	n := blocks[0].Len()
	if slices.Equal(blocks, equal(len(blocks), n)) {
		return c.AllGather(rank, len(blocks), n, elem)
	}
	return RingAllGather(nil, rank, blocks)
}

// equal are blocks of n elements.
func equal(size, n int) []Range {
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

// TogetherAllToAll says whether an all-to-all of blocks of so many bytes is one for BruckAllToAll.
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
