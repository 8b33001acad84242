package plan

import (
	"math/bits"
	"slices"
)

// shortAllReduce and middleAllReduce are the lengths in bytes up to which fewer steps beat fewer bytes in an all-reduce, and
// fewer steps beat messages between neighbours only. The choice depends on nothing but the call, so every rank chooses
// the same algorithm.
const (
	shortAllReduce  = 64 << 10
	middleAllReduce = 1 << 20
)

// pairAllReduce is shortAllReduce of two ranks, which send as many bytes either way.
const pairAllReduce = 256 << 10

// Piece is the length in bytes of the pieces in which messages travel. Long ones cost fewer calls of the system, and let ranks
// that share a processor go on for longer; what combines them finds them in a cache still.
const Piece = 1 << 20

// shortAllGather is the length in bytes of all blocks together up to which fewer steps beat messages between neighbours
// only.
const shortAllGather = 80 << 10

// shortBlock is the length in bytes up to which blocks better travel together, by way of other ranks, than each straight to
// where it belongs.
const shortBlock = 256

// manyRanks is the number of ranks from which that holds if the blocks are all for one rank, or all from one: it then talks
// to a few ranks instead of to all.
const manyRanks = 17

// AllReduce picks the algorithm for a vector of n elements of elem bytes each; ordered says that the operation does not
// commute.
func AllReduce(rank, size, n, elem int, ordered bool) Plan {
	short := shortAllReduce
	if size == 2 {
		short = pairAllReduce
	}
	switch {
	case n < size || n*elem <= short:
		return DoublingAllReduce(rank, size, n)
	case ordered || n*elem <= middleAllReduce:
		return HalvingAllReduce(rank, size, n)
	}
	return RingAllReduce(rank, size, n)
}

// AllGather picks the algorithm for collecting blocks of n elements of elem bytes each.
func AllGather(rank, size, n, elem int) Plan {
	if size*n*elem <= shortAllGather {
		return BruckAllGather(rank, size, n)
	}
	return RingAllGather(rank, equal(size, n))
}

// AllGatherV picks the algorithm for collecting blocks of any lengths.
func AllGatherV(rank int, blocks []Range, elem int) Plan {
	n := blocks[0].Len()
	if slices.Equal(blocks, equal(len(blocks), n)) {
		return AllGather(rank, len(blocks), n, elem)
	}
	return RingAllGather(rank, blocks)
}

// equal are blocks of n elements.
func equal(size, n int) []Range {
	blocks := make([]Range, size)
	for i := range blocks {
		blocks[i] = Range{i * n, (i + 1) * n}
	}
	return blocks
}

// Broadcast picks the algorithm for a vector of n elements of elem bytes each.
func Broadcast(rank, size, n, elem, root int) Plan {
	if inChain(size, n*elem/Piece) {
		return ChainBroadcast(rank, size, n, root)
	}
	return BinomialBroadcast(rank, size, n, root)
}

// Reduce picks the algorithm for a reduction to root.
func Reduce(rank, size, n, elem, root int, ordered bool) Plan {
	switch {
	case ordered:
		return OrderedReduce(rank, size, n, root)
	case inChain(size, n*elem/Piece):
		return ChainReduce(rank, size, n, root)
	}
	return BinomialReduce(rank, size, n, root)
}

// inChain says whether so many pieces are sooner at the other end of a chain than out of the root of a tree, which sends each
// of them several times.
func inChain(size, pieces int) bool {
	return pieces*(depth(size)-1) > size-2
}

// depth is that of a binomial tree.
func depth(size int) int { return bits.Len(uint(size - 1)) }

// ReduceScatter picks the algorithm for a reduction of which every rank keeps a block.
func ReduceScatter(rank int, blocks []Range, ordered bool) Plan {
	if ordered {
		return OrderedReduceScatter(rank, blocks)
	}
	return PairwiseReduceScatter(rank, blocks)
}

// TogetherAllToAll says whether an all-to-all of blocks of so many bytes is one for BruckAllToAll.
func TogetherAllToAll(size, bytes int) bool { return size > 3 && bytes <= shortBlock }

// TogetherGather says whether a gather or scatter of such blocks is one for BinomialGather or BinomialScatter.
func TogetherGather(size, bytes int) bool { return size >= manyRanks && bytes <= shortBlock }
