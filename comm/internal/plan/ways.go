package plan

import (
	"math"
	"math/bits"
	"slices"

	"github.com/gorun/gorun/comm/internal/choice"
)

// ChunkSize is how many bytes of a message travel at once. Long chunks cost fewer system calls, and let ranks that
// share a processor run longer at a time. They still fit into a cache until they are combined.
const ChunkSize = 1 << 20

// NetworkChunkSize is how many bytes of a message travel at once between machines where each rank has a processor.
// While a rank copies a longer chunk out of a socket, the others in which it has bytes to send run empty. Between two
// machines at 10 Gbit/s, an all-reduce of 16 MiB reached 94 to 100 % of the rate of the links with such chunks, and 79
// to 92 % with those of ChunkSize. Within a machine and where ranks share processors, long chunks were faster.
const NetworkChunkSize = 256 << 10

// mostMessage is the most bytes that go in one direction of a ring before some go in the other one. Ranks send no more
// than this ahead of what they receive, so one direction never waits for the other.
const mostMessage = 2 * ChunkSize

// mostRingMessage is the most bytes of a message of a reduce-scatter around a ring. Between eight machines at 10
// Gbit/s, with blocks of 128 KiB, messages of 15 KiB reached 55 % of the rate of the links, those of 43 KiB 98 %, and
// those of 64 KiB 96 %; with blocks of 4 MiB between four, those of 64 KiB reached 84 %, and those of 380 KiB 77 %.
const mostRingMessage = 64 << 10

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

// mostPairwiseMemory is the most bytes of the vectors of all ranks, which each rank keeps for PairwiseAllReduce.
const mostPairwiseMemory = 32 << 20

// The algorithms on a ring.
const (
	oneWay    = "ring"
	bothWays  = "bidirectional"
	pipelined = "pipeline"
)

// Ways are the algorithms of this package, by bytes of the whole vector. The operation "nodes" is about what nodes
// exchange of the results that each has made in memory.
var Ways = choice.Table{
	{Op: "all_reduce", Way: "doubling", UpTo: fewSteps(16 << 10), What: "recursive doubling: fewest steps, whole vectors"},
	{Op: "all_reduce", Way: "halving", UpTo: limit(512 << 10), What: "recursive halving and doubling: fewest bytes, few steps"},
	{Op: "all_reduce", Way: oneWay, UpTo: forTwo(choice.Any, 2<<20), What: "ring reduce-scatter and all-gather: fewest bytes, between neighbours only"},
	{Op: "all_reduce", Way: bothWays, What: "ring in both directions, with half of the vector each"},
	{Op: "all_reduce", Way: "pairwise", UpTo: never, What: "pairwise exchange of whole vectors: one latency"},
	{Op: "reduce", Way: "binomial", UpTo: treeLimit, What: "binomial tree"},
	{Op: "reduce", Way: pipelined, What: "from neighbour to neighbour in short messages, which overlap"},
	{Op: "reduce", Way: "linear", UpTo: never, What: "each vector straight to root: one latency"},
	{Op: "broadcast", Way: "binomial", UpTo: treeLimit, What: "binomial tree"},
	{Op: "broadcast", Way: pipelined, What: "from neighbour to neighbour in short messages, which overlap"},
	{Op: "broadcast", Way: "linear", UpTo: never, What: "straight from root to each rank: one latency"},
	{Op: "all_gather", Way: "doubling", UpTo: powerOfTwo(longestDoubled, choice.Never), What: "recursive doubling: fewest messages"},
	{Op: "all_gather", Way: "bruck", UpTo: limit(80 << 10), What: "Bruck: fewest steps"},
	{Op: "all_gather", Way: oneWay, UpTo: forTwo(choice.Any, choice.Never), What: "ring: between neighbours only"},
	{Op: "all_gather", Way: bothWays, What: "ring in both directions, with half of every block each"},
	{Op: "all_gather", Way: "pairwise", UpTo: never, What: "pairwise exchange, each block straight to every rank: one latency"},
	{Op: "reduce_scatter", Way: "halving", UpTo: powerOfTwo(256<<10, 1<<10), What: "recursive halving: fewest steps"},
	{Op: "reduce_scatter", Way: "pairwise", UpTo: pairwiseLimit, What: "pairwise exchange: each block straight to its owner"},
	{Op: "reduce_scatter", Way: pipelined, What: "ring in short messages, which overlap: between neighbours only"},
	{Op: "all_to_all", Way: "bruck", UpTo: shortBlocks(4), What: "Bruck: blocks travel together, by way of other ranks"},
	{Op: "all_to_all", Way: "pairwise", What: "pairwise exchange: each block straight to where it belongs"},
	{Op: "gather", Way: "binomial", UpTo: shortBlocks(manyRanks), What: "binomial tree: blocks travel together"},
	{Op: "gather", Way: "linear", What: "each block straight to root"},
	{Op: "scatter", Way: "binomial", UpTo: shortBlocks(manyRanks), What: "binomial tree: blocks travel together"},
	{Op: "scatter", Way: "linear", What: "each block straight from root"},
	{Op: "barrier", Way: "dissemination", What: "dissemination: over distances that double"},
	{Op: "barrier", Way: "pairwise", UpTo: never, What: "a message from each rank to every other one: one latency"},
	{Op: "nodes", Way: "leaders", UpTo: limit(64 << 10), What: "one rank of each node carries the vector: each message has a cost of its own"},
	{Op: "nodes", Way: "rails", What: "every rank of a node carries its slice of the vector"},
	{Op: "scan", Way: "doubling", What: "recursive doubling, in order of rank"},
}

// WaysNearby are the algorithms of ranks that are all on one machine. Their messages use no network, only processors,
// for which two directions of a ring are more work than one, and many messages more than few. No link can be overloaded
// by several senders, so each block goes straight to its owner. Four ranks on two processors gather 128 KiB in 68
// microseconds by doubling and in 92 around a ring, and 512 KiB in 450 and 300; all-reduces of 32 KiB take 67
// microseconds by doubling and 80 by halving, and those of 128 KiB 310 and 157.
var WaysNearby = reordered(Ways, choice.Table{
	{Op: "all_reduce", Way: "doubling", UpTo: fewSteps(64 << 10)},
	{Op: "all_reduce", Way: "halving", UpTo: limit(1 << 20)},
	{Op: "all_reduce", Way: oneWay},
	{Op: "reduce", Way: "binomial", UpTo: chunkTreeLimit},
	{Op: "reduce", Way: pipelined},
	{Op: "broadcast", Way: "binomial", UpTo: chunkTreeLimit},
	{Op: "broadcast", Way: pipelined},
	{Op: "all_gather", Way: "doubling", UpTo: powerOfTwo(128<<10, choice.Never)},
	{Op: "all_gather", Way: "bruck", UpTo: limit(80 << 10)},
	{Op: "all_gather", Way: oneWay},
	{Op: "reduce_scatter", Way: "halving", UpTo: powerOfTwo(256<<10, 1<<10)},
	{Op: "reduce_scatter", Way: "pairwise"},
})

// WaysFar are the algorithms of ranks on machines that are 2 ms or more away from each other. There, the number of
// messages that follow one another decides how long a call takes, until the links have much to carry. So each rank
// sends to every other one at once, up to what a link of 1 Gbit/s carries in a few of these latencies. Between eight
// machines 5 ms apart, an all-reduce of 64 B takes 1.2 latencies; around a ring, it would take 14.
var WaysFar = reordered(Ways, choice.Table{
	{Op: "all_reduce", Way: "pairwise", UpTo: inAll(1 << 20)},
	{Op: "all_reduce", Way: "doubling", UpTo: forTwo(2<<20, 512<<10)},
	{Op: "all_reduce", Way: "halving", UpTo: each(256 << 10)},
	{Op: "all_reduce", Way: oneWay, UpTo: forTwo(choice.Any, choice.Never)},
	{Op: "all_reduce", Way: bothWays},
	{Op: "reduce", Way: "linear", UpTo: inAll(1 << 20)},
	{Op: "reduce", Way: "binomial", UpTo: limit(512 << 10)},
	{Op: "reduce", Way: pipelined},
	{Op: "broadcast", Way: "linear", UpTo: inAll(1 << 20)},
	{Op: "broadcast", Way: "binomial", UpTo: limit(512 << 10)},
	{Op: "broadcast", Way: pipelined},
	{Op: "all_gather", Way: "pairwise", UpTo: each(384 << 10)},
	{Op: "all_gather", Way: oneWay, UpTo: forTwo(choice.Any, choice.Never)},
	{Op: "all_gather", Way: bothWays},
	{Op: "reduce_scatter", Way: "pairwise", UpTo: each(256 << 10)},
	{Op: "reduce_scatter", Way: pipelined},
	{Op: "all_to_all", Way: "pairwise"},
	{Op: "gather", Way: "linear"},
	{Op: "scatter", Way: "linear"},
	{Op: "barrier", Way: "pairwise"},
})

// reordered returns ways in which the lines of first come first, with their limits. Others of the same operations are
// used only if a tuning names them.
func reordered(ways, first choice.Table) choice.Table {
	ways = slices.Clone(ways)
	for i := range first {
		l := &first[i]
		k := slices.IndexFunc(ways, func(w choice.Line) bool { return w.Op == l.Op && w.Way == l.Way })
		l.What = ways[k].What
		ways = slices.Delete(ways, k, k+1)
	}
	for i := range ways {
		if slices.ContainsFunc(first, func(l choice.Line) bool { return l.Op == ways[i].Op }) {
			ways[i].UpTo = never
		}
	}
	return append(first, ways...)
}

func never(int) int { return choice.Never }

func limit(bytes int) func(int) int { return func(int) int { return bytes } }

// each returns the limit of blocks of so many bytes, one for each rank.
func each(bytes int) func(int) int { return func(ranks int) int { return ranks * bytes } }

// inAll returns the limit of a vector that each rank sends to all others, so many bytes in all.
func inAll(bytes int) func(int) int { return func(ranks int) int { return bytes / ranks } }

// powerOfTwo returns the limit of an algorithm: bytes if the number of ranks is a power of two, and otherwise others,
// because the algorithm then takes two more steps with the whole vector. For two ranks, it is never chosen: all
// algorithms are one exchange then.
func powerOfTwo(bytes, others int) func(int) int {
	return func(ranks int) int {
		switch {
		case ranks <= 2:
			return choice.Never
		case bits.OnesCount(uint(ranks)) == 1:
			return bytes
		}
		return others
	}
}

// forTwo returns the limit of an algorithm: two for two ranks, which have only one other to send to, and others for
// more.
func forTwo(two, others int) func(int) int {
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
		return choice.Any
	}
	return ranks * 64 << 10
}

// fewSteps returns the limit up to which an all-reduce takes few steps rather than few bytes: 256 KiB for two ranks,
// which send as many bytes in both cases, and otherwise bytes. Between eight machines, vectors of 16 KiB took 410
// microseconds in few steps and 244 in few bytes at 1 Gbit/s, and 64 and 98 at 10 Gbit/s; vectors of 32 KiB took 811
// and 482, and 105 and 109.
func fewSteps(bytes int) func(int) int { return forTwo(256<<10, bytes) }

// shortBlocks is the limit of an algorithm for short blocks, with at least so many ranks.
func shortBlocks(from int) func(int) int {
	return func(ranks int) int {
		if ranks < from {
			return choice.Never
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
		return choice.Any
	}
	return ((ranks-2)/(depth-1) + 1) * ChunkSize
}

// treeLimit is the most bytes for which a tree is chosen. A vector of x times messageCost bytes takes depth*(x+1) times
// as long in a tree as messageCost bytes on a link, and (sqrt(x)+sqrt(ranks-2))^2 times as long in a chain with the
// best number of messages. The limit is half of the bytes for which both are equal, because calls in a row overlap: the
// root of a tree sends each vector several times, that of a chain once. Between eight machines at 10 Gbit/s, vectors of
// 128 KiB took 328 microseconds in a tree and 203 in a chain. It is at least 64 KiB: a chain of fewer bytes has few
// messages, of which each costs time on every rank.
func treeLimit(ranks int) int {
	depth := treeDepth(ranks)
	if depth <= 1 {
		return choice.Any
	}
	d, between := float64(depth-1), float64(ranks-2)
	x := (math.Sqrt(between) + math.Sqrt(between+d*(between-d-1))) / d
	return max(int(x*x*messageCost/2), 4*messageCost)
}

// treeDepth is the number of messages that the root of a binomial tree sends.
func treeDepth(ranks int) int { return bits.Len(uint(ranks - 1)) }

// messageCost is how many bytes can be sent in the time that a message costs whatever its length. It is between 6 KiB
// on a network of 1 Gbit/s and 60 KiB on one of 10 Gbit/s, if that time is 50 microseconds. Between eight machines at
// 10 Gbit/s, a broadcast of 256 KiB reached 94 % of the rate of the links with this value, and 67 % with half of it.
const messageCost = 16 << 10

// chainMessages returns in how many messages a vector of n elements of elem bytes each goes down a chain fastest. In k
// messages of m bytes it takes k+P-2 times as long as one, which is as long as to send m+messageCost bytes.
func chainMessages(ranks, n, elem int) int {
	k := int(math.Sqrt(float64(n*elem) * float64(max(ranks-2, 0)) / messageCost))
	return max(min(k, n), 1)
}
