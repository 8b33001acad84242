package shm

import "github.com/gorun/gorun/comm/internal/choice"

const lineSize = choice.LineSize

// ways are a team's algorithms for operations that have several.
type ways struct{ allReduce, reduce choice.Ways }

func waysOf(c choice.Chooser, n int) ways {
	return ways{allReduce: c.Ways("all_reduce", n), reduce: c.Ways("reduce", n)}
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
