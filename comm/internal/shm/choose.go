package shm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/choice"
)

const lineSize = 64

// Ways are the algorithms of a team whose ranks may have to share processors, by bytes of the whole buffer. Long buffers in heaps are used
// in place instead (inplace.go). Users name these algorithms in their tuning.
var Ways = choice.Table{
	{Op: "all_reduce", Way: "ll", UpTo: mostLL, Fixed: true, What: oneOrFewLines},
	{Op: "all_reduce", Way: "flat", UpTo: flatUpTo(largestFlat), What: "every rank combines all, through slots"},
	{Op: "all_reduce", Way: "shared", What: "every rank combines its slice: reduce-scatter and all-gather through slots"},
	{Op: "reduce", Way: "ll", UpTo: mostLL, Fixed: true, What: oneOrFewLines},
	{Op: "reduce", Way: "flat", UpTo: flatUpTo(largestFlatReduceShared), What: "the root combines all, through slots"},
	{Op: "reduce", Way: "shared", What: "every rank combines its slice, of which the root takes the results from slots"},
	{Op: "broadcast", Way: "ll", UpTo: mostLL, Fixed: true, What: oneOrFewLines},
	{Op: "broadcast", Way: "slots", What: "ranks read from the root's slots"},
	{Op: "all_gather", Way: "ll", UpTo: mostLLOfEach, Fixed: true, What: oneOrFewLines},
	{Op: "all_gather", Way: "slots", What: "ranks read from each other's slots"},
	{Op: "reduce_scatter", Way: "ll", UpTo: mostLLToEach, Fixed: true, What: oneOrFewLines},
	{Op: "reduce_scatter", Way: "slots", What: "every rank combines its block out of the others' slots"},
	{Op: "all_to_all", Way: "ll", UpTo: mostLLToEach, Fixed: true, What: oneOrFewLines},
	{Op: "all_to_all", Way: "slots", What: "ranks read their blocks from each other's slots"},
	{Op: "gather", Way: "ll", UpTo: mostLLOfEach, Fixed: true, What: oneOrFewLines},
	{Op: "gather", Way: "slots", What: "the root reads from slots"},
	{Op: "scatter", Way: "ll", UpTo: mostLLToEach, Fixed: true, What: oneOrFewLines},
	{Op: "scatter", Way: "slots", What: "ranks read their blocks from the root's slots"},
	{Op: "barrier", Way: "ll", UpTo: llBarrierLimit, Fixed: true, What: "ranks read empty LL messages from each other"},
	{Op: "barrier", Way: "dissemination", What: "dissemination: over distances that double"},
}

// WaysWithProcessors are the algorithms of a team in which each rank has a processor. There it costs little to wait for each other, and much to
// read what another processor has written: 16 ranks combine 4 KiB in 100 microseconds if every rank reads all, and in 9 if they share the
// work. So only two ranks use the flat all-reduce, and a root combines less by itself.
var WaysWithProcessors = withProcessors(Ways)

func withProcessors(ways choice.Table) choice.Table {
	ways = slices.Clone(ways)
	for i := range ways {
		switch l := &ways[i]; {
		case l.Op == "all_reduce" && l.Way == "flat":
			l.UpTo = func(ranks int) int {
				if ranks == 2 {
					return choice.Any
				}
				return choice.Never
			}
		case l.Op == "reduce" && l.Way == "flat":
			l.UpTo = flatUpTo(largestFlatReduce)
		}
	}
	return ways
}

const oneOrFewLines = "low latency: data and flag in one or a few cache lines"

// ways are a team's algorithms for operations that have several.
type ways struct{ allReduce, reduce choice.Choice }

func waysOf(c choice.Chooser, n int) ways {
	return ways{allReduce: c.Choice("all_reduce", n), reduce: c.Choice("reduce", n)}
}

// mostLL is the longest buffer that fits into one LL message, mostLLOfEach the longest that fits into one message from every rank, and
// mostLLToEach the longest that fits into one message to every rank.
func mostLL(int) int             { return longestLL(1) }
func mostLLOfEach(ranks int) int { return ranks * longestLL(1) }
func mostLLToEach(ranks int) int { return max(ranks*longestLL(ranks), choice.Never) }

// flatUpTo returns the limit up to which one rank, or every rank, combines all of a buffer: bytes for more than two ranks. Two ranks then write
// and read as much as if they shared the work, and wait half as often.
func flatUpTo(bytes int) func(ranks int) int {
	return func(ranks int) int {
		if ranks == 2 {
			return choice.Any
		}
		return bytes
	}
}

func llBarrierLimit(ranks int) int {
	if ranks <= mostLLBarrier {
		return choice.Any
	}
	return choice.Never
}

// chunking returns the length of the chunks of n bytes, at most limit, and their number. If n is 0 there is one, so that ranks wait for
// each other. Chunks are as long as possible: with two ranks on two cores, shorter ones lost more by more waits, and by writing while
// the other rank reads, than they gained by earlier reads.
func (t *Team) chunking(n, limit int) (size, count int) {
	size = min((n+lineSize-1)/lineSize*lineSize, limit)
	return size, max((n+size-1)/max(size, 1), 1)
}

// slotPerRank is the most bytes for one rank in a slot that has a block for each of n ranks.
func slotPerRank(slot, n int) int { return slot / n / lineSize * lineSize }

// Fits reports whether values of elem bytes can be reduced: a slot must hold one for every rank.
func (t *Team) Fits(elem int) bool { return t.mostElem >= elem }

// Fits is Team.Fits for a team of n.
func Fits(n, elem int) bool { return slotPerRank(slotSize(n), n) >= elem }
