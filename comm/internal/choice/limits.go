package choice

import (
	"math"
	"math/bits"
)

// A Limit is the most bytes of a buffer for which so many ranks use an algorithm; nil: Any.
type Limit func(ranks int) int

func (l Limit) of(ranks int) int {
	if l == nil {
		return Any
	}
	return l(ranks)
}

// ChunkSize is how many bytes of a message travel at once. Long chunks cost fewer system calls, and let ranks that
// share a processor run longer at a time. They still fit into a cache until they are combined.
const ChunkSize = 1 << 20

// networkChunk is how many bytes of a message travel at once between machines where each rank has a processor.
// While a rank copies a longer chunk out of a socket, the others in which it has bytes to send run empty. Between two
// machines at 10 Gbit/s, an all-reduce of 16 MiB reached 94 to 100 % of the rate of the links with such chunks, and 79
// to 92 % with those of ChunkSize. Within a machine and where ranks share processors, long chunks were faster.
const networkChunk = 256 << 10

// ringMessage is the most bytes of a message of a reduce-scatter around a ring. Between eight machines at 10 Gbit/s, with
// blocks of 128 KiB, messages of 15 KiB reached 55 % of the rate of the links, those of 43 KiB 98 %, and those of 64 KiB
// 96 %; with blocks of 4 MiB between four, those of 64 KiB reached 84 %, and those of 380 KiB 77 %.
const ringMessage = 64 << 10

// longestDoubled is the most bytes that are gathered by doubling. Between eight machines at 10 Gbit/s, 128 KiB took 100
// microseconds by doubling, 150 around a ring, and 221 around it in both directions; from 256 KiB on, the network was
// the limit of the first two.
const longestDoubled = 256 << 10

// shortBlock is the most bytes of a block for which it is faster to send blocks together, by way of other ranks, than
// each directly.
const shortBlock = 256

// manyRanks is the least number of ranks for which that is so if all blocks are for one rank, or from one rank: that
// rank then talks to a few ranks instead of to all.
const manyRanks = 17

// most returns the limit of a for op that no tuning exceeds.
func (a Algorithm) most(op string, ranks int) int {
	if op == "all_reduce" && a == Pairwise { // each rank keeps the vectors of all
		return inAll(32 << 20).of(ranks)
	}
	return Any
}

// upTo returns a limit that does not depend on the number of ranks.
func upTo(bytes int) Limit { return func(int) int { return bytes } }

// each returns the limit of blocks of so many bytes, one for each rank.
func each(bytes int) Limit { return func(ranks int) int { return ranks * bytes } }

// inAll returns the limit of a vector that each rank sends to all others, so many bytes in all.
func inAll(bytes int) Limit { return func(ranks int) int { return bytes / ranks } }

// powerOfTwo returns the limit of an algorithm: bytes if the number of ranks is a power of two, and otherwise others,
// because the algorithm then takes two more steps with the whole vector. For two ranks, it is never chosen: all
// algorithms are one exchange then.
func powerOfTwo(bytes, others int) Limit {
	return func(ranks int) int {
		switch {
		case ranks <= 2:
			return Never
		case bits.OnesCount(uint(ranks)) == 1:
			return bytes
		}
		return others
	}
}

// forTwo returns the limit of an algorithm: two for two ranks, which have only one other to send to, and others for
// more.
func forTwo(two, others int) Limit {
	return func(ranks int) int {
		if ranks == 2 {
			return two
		}
		return others
	}
}

// pairwiseLimit is the most bytes for which each block goes straight to its owner. With longer blocks, ranks drift
// apart, and then several of them send to one at the same time, while others receive nothing. With blocks of 128 KiB, a
// ring between eight machines reached 96 % of links of 10 Gbit/s instead of 86, and of 256 KiB 91 instead of 79.
func pairwiseLimit(ranks int) int {
	if ranks <= 2 {
		return Any
	}
	return ranks * 64 << 10
}

// fewSteps returns the limit up to which an all-reduce takes few steps rather than few bytes: 256 KiB for two ranks,
// which send as many bytes in both cases, and otherwise bytes. Between eight machines, vectors of 16 KiB took 410
// microseconds in few steps and 244 in few bytes at 1 Gbit/s, and 64 and 98 at 10 Gbit/s; vectors of 32 KiB took 811
// and 482, and 105 and 109.
func fewSteps(bytes int) Limit { return forTwo(256<<10, bytes) }

// shortBlocks is the limit of an algorithm for short blocks, with at least so many ranks.
func shortBlocks(from int) Limit {
	return func(ranks int) int {
		if ranks < from {
			return Never
		}
		return ranks * shortBlock
	}
}

// chunkTreeLimit is the most bytes for which a tree is faster than a chain in which chunks overlap. The root of a tree
// sends each chunk several times, so the last chunk of a long vector reaches the end of a chain before it has left the
// root of a tree.
func chunkTreeLimit(ranks int) int {
	depth := treeDepth(ranks)
	if depth <= 1 {
		return Any
	}
	return ((ranks-2)/(depth-1) + 1) * ChunkSize
}

// treeLimit is the most bytes for which a tree is chosen. A vector of x times MessageCost bytes takes depth*(x+1) times
// as long in a tree as MessageCost bytes on a link, and (sqrt(x)+sqrt(ranks-2))^2 times as long in a chain with the
// best number of messages. The limit is half of the bytes for which both are equal, because calls in a row overlap: the
// root of a tree sends each vector several times, that of a chain once. Between eight machines at 10 Gbit/s, vectors of
// 128 KiB took 328 microseconds in a tree and 203 in a chain. It is at least 64 KiB: a chain of fewer bytes has few
// messages, of which each costs time on every rank.
func treeLimit(ranks int) int {
	depth := treeDepth(ranks)
	if depth <= 1 {
		return Any
	}
	d, between := float64(depth-1), float64(ranks-2)
	x := (math.Sqrt(between) + math.Sqrt(between+d*(between-d-1))) / d
	return max(int(x*x*MessageCost/2), 4*MessageCost)
}

// treeDepth is the number of messages that the root of a binomial tree sends.
func treeDepth(ranks int) int { return bits.Len(uint(ranks - 1)) }

// MessageCost is how many bytes can be sent in the time that a message costs whatever its length. It is between 6 KiB
// on a network of 1 Gbit/s and 60 KiB on one of 10 Gbit/s, if that time is 50 microseconds. Between eight machines at
// 10 Gbit/s, a broadcast of 256 KiB reached 94 % of the rate of the links with this value, and 67 % with half of it.
const MessageCost = 16 << 10

// flatUpTo returns the limit up to which one rank, or every rank, combines all of a buffer in memory: bytes for more
// than two ranks. Two ranks then write and read as much as if they shared the work, and wait half as often.
func flatUpTo(bytes int) Limit { return forTwo(Any, bytes) }

// LongestLL is the most bytes of a message of the LL protocol if count messages share an entry. It is negative if that
// many do not fit.
func LongestLL(count int) int { return LLEntrySize/count/LineSize*LineSize - LLFlagSize }

// Sizes in bytes.
const (
	LineSize   = 64 // of a cache line
	LLFlagSize = 8  // of what a message of the LL protocol has beside its data
)

// mostLL is the longest buffer that fits into one LL message, mostLLOfEach the longest that fits into one message from
// every rank, and mostLLToEach the longest that fits into one message to every rank.
func mostLL(int) int             { return LongestLL(1) }
func mostLLOfEach(ranks int) int { return ranks * LongestLL(1) }
func mostLLToEach(ranks int) int { return max(ranks*LongestLL(ranks), Never) }

func llBarrierLimit(ranks int) int {
	if ranks <= MostLLBarrier {
		return Any
	}
	return Never
}
