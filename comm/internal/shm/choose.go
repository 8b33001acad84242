package shm

import "github.com/gorun/gorun/comm/internal/choice"

const lineSize = 64

// Ways are those of a team, for bytes of the whole buffer. Where buffers that lie in heaps are used in place (see direct.go)
// it is none of them, but as letters are never.
var Ways = choice.Table{
	{Op: "all_reduce", Way: "letters", UpTo: oneLetter, Fixed: true, What: aLetter},
	{Op: "all_reduce", Way: "flat", UpTo: flatAllReduce, What: "every rank combines all, through slots"},
	{Op: "all_reduce", Way: "shared", What: "every rank combines its share: reduce-scatter and all-gather through slots"},
	{Op: "reduce", Way: "letters", UpTo: oneLetter, Fixed: true, What: aLetter},
	{Op: "reduce", Way: "flat", UpTo: flatAllReduce, What: "the root combines all, through slots"},
	{Op: "reduce", Way: "shared", What: "every rank combines its share, of which the root takes the results from slots"},
	{Op: "broadcast", Way: "letters", UpTo: oneLetter, Fixed: true, What: aLetter},
	{Op: "broadcast", Way: "slots", What: "ranks read from the root's slots"},
	{Op: "all_gather", Way: "letters", UpTo: letterEach, Fixed: true, What: aLetter},
	{Op: "all_gather", Way: "slots", What: "ranks read from each other's slots"},
	{Op: "reduce_scatter", Way: "letters", UpTo: letters, Fixed: true, What: aLetter},
	{Op: "reduce_scatter", Way: "slots", What: "every rank combines its block out of the others' slots"},
	{Op: "all_to_all", Way: "letters", UpTo: letters, Fixed: true, What: aLetter},
	{Op: "all_to_all", Way: "slots", What: "ranks read their blocks from each other's slots"},
	{Op: "gather", Way: "letters", UpTo: letterEach, Fixed: true, What: aLetter},
	{Op: "gather", Way: "slots", What: "the root reads from slots"},
	{Op: "scatter", Way: "letters", UpTo: letters, Fixed: true, What: aLetter},
	{Op: "scatter", Way: "slots", What: "ranks read their blocks from the root's slots"},
	{Op: "barrier", Way: "letters", UpTo: lettersToAll, Fixed: true, What: "ranks read empty letters from each other"},
	{Op: "barrier", Way: "dissemination", What: "dissemination: over distances that double"},
}

const aLetter = "a tag and the data in one or a few cache lines"

// oneLetter is the longest buffer that one letter carries, letterEach the longest that one of every rank do, and letters the
// longest that those of an entry do, one for every rank.
func oneLetter(int) int        { return longestLetter(1) }
func letterEach(ranks int) int { return ranks * longestLetter(1) }
func letters(ranks int) int    { return max(ranks*longestLetter(ranks), choice.Never) }

// flatAllReduce is the longest buffer of which every rank better works out all for itself. Two ranks write to slots and read
// from them as much as if they shared the work, and wait half as often.
func flatAllReduce(ranks int) int {
	if ranks == 2 {
		return choice.Any
	}
	return largestFlat
}

// isFlat says whether so many ranks all look at each other in a barrier.
func isFlat(ranks int) bool { return ranks <= mostFlat }

func lettersToAll(ranks int) int {
	if isFlat(ranks) {
		return choice.Any
	}
	return choice.Never
}

// ways are those of operations that have several.
type ways struct{ allReduce, reduce choice.Choice }

func chosen(n int, tuning choice.Tuning) ways {
	c := choice.Chooser{Table: Ways, Tuning: tuning}
	return ways{allReduce: c.Choice("all_reduce", n), reduce: c.Choice("reduce", n)}
}

// LeastInPlace is how many bytes a rank takes from another at least where they look where a buffer lies in a heap.
const LeastInPlace = leastDirect

// pieces is how long the pieces are in which n bytes travel, at most limit, and how many there are; one if there is nothing
// to send, so that ranks meet. They are as long as can be: with two ranks on two cores, to begin to read earlier gained less
// than the ranks lost by waiting for each other more often, and by writing while the other one reads.
func (t *Team) pieces(n, limit int) (size, count int) {
	size = min((n+lineSize-1)/lineSize*lineSize, limit)
	return size, max((n+size-1)/max(size, 1), 1)
}

// part is the most bytes of a slot for one of the ranks that share it.
func (t *Team) part() int { return partOf(t.slot, t.n) }

func partOf(slot, n int) int { return slot / n / lineSize * lineSize }

// Fits says whether values of elem bytes can be reduced: a slot holds one for every rank.
func (t *Team) Fits(elem int) bool { return t.largest >= elem }

// Fits says that of a team of n.
func Fits(n, elem int) bool { return partOf(slotSize(n), n) >= elem }
