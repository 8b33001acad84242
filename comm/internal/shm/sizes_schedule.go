//go:build schedule

package shm

// How much there is of everything; so little that short runs come to its ends. Other tests want more.
const (
	// Letters.
	entrySize   = 4 * lineSize // at most
	mailboxSize = 1 << 10      // three entries at least: none is where the one before it has been
	entries     = 4            // that may not be vacant at most: how far ranks are ahead of others in short operations

	remembered = 16 // how many operations back can be read what a rank has called

	// Slots.
	longestStretch  = 1 << 10
	shortestStretch = 1 << 10
	allStretches    = 1 << 20 // bytes, of all ranks together
	largestSlot     = 256
	slotForEach     = 128     // bytes of a slot for each of few ranks
	backedPiece     = 1 << 10 // a stretch gets its memory in pieces of at least so many bytes
	mostLent        = 16      // slots, a power of two

	// Ways to go about an operation.
	largestFlat  = 256     // bytes that each of several ranks works out for itself
	mostFlat     = 2       // ranks that all look at each other in a barrier
	leastDirect  = 384     // bytes that ranks take from each other at least when they look where these lie
	leastInCrowd = 512     // the same in a broadcast by a rank that shares its processor with others
	spreadBlock  = 256     // what is copied to everybody at a time
	foldBlock    = 128     // bytes that are reduced at a time: they stay in the first-level cache
	leastPast    = 128     // bytes of the shortest copy that may go past the caches
	allCaches    = 3 << 10 // bytes, of all ranks' buffers together, from which on copies are not worth the room in the caches
)
