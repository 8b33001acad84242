package shm

// The figures below were measured with two ranks on two cores that have 48 KiB of first-level and 1 MiB of second-level
// cache each: slots that stay in the second level serve best, and more than one chunk pays as soon as a rank could be
// reading one while the next is written.

const (
	lineSize = 64

	leastPiece = 16 << 10 // bytes below which cutting costs more than it gains
	bestPiece  = 128 << 10
	pipelined  = 4 // pieces that an operation should have, if they do not get too short

	flatBarrier = 8 // the most ranks that all look at each other in a barrier

	flatTwo  = 24 << 10 // the longest all-reduce, in bytes, that every rank works out for itself: of two ranks,
	flatMore = 8 << 10  // and of more
)

// pieces is how long the pieces are in which n bytes travel, at most limit, and how many there are; one if there is nothing
// to send, so that ranks meet.
func (t *Team) pieces(n, limit int) (size, count int) {
	size = max(n/pipelined, leastPiece)
	size = min((size+lineSize-1)/lineSize*lineSize, bestPiece, limit)
	return size, max((n+size-1)/size, 1)
}

// part is the most bytes of a slot for one of the ranks that share it.
func (t *Team) part() int { return t.slot / t.n / lineSize * lineSize }

// Fits says whether values of elem bytes can be reduced: a slot holds one for every rank.
func (t *Team) Fits(elem int) bool { return t.part() >= elem }
