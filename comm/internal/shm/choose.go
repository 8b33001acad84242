package shm

const (
	lineSize = 64

	leastDirect = 16 << 10  // bytes that ranks take from each other at least when they look where these lie
	spreadBlock = 256 << 10 // what is copied to everybody at a time

	throughCaches = 512 << 10 // what is copied at once if it is to stay in the caches
	pastCaches    = 4 << 20   // bytes from which on a copy is not worth the room there

	flatBarrier = 8       // the most ranks that all look at each other in a barrier
	flatMore    = 8 << 10 // the longest all-reduce, in bytes, of more than two ranks that each works out for itself
)

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
func (t *Team) Fits(elem int) bool { return t.part() >= elem }

// Fits says that of a team of n.
func Fits(n, elem int) bool { return partOf(slotSize(n), n) >= elem }
