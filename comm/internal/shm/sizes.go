//go:build !schedule

package shm

// How much there is of everything; see sizes_schedule.go for less.
const (
	// Letters.
	entrySize   = 40 * lineSize // at most
	mailboxSize = 8 << 10       // three entries at least: none is where the one before it has been
	entries     = 64            // that may not be vacant at most: how far ranks are ahead of others in short operations

	remembered = 128 // how many operations back can be read what a rank has called

	// Slots.
	longestStretch  = 2 << 20
	shortestStretch = 64 << 10
	allStretches    = 16 << 20 // bytes, of all ranks together
	largestSlot     = 256 << 10
	slotForEach     = 64 << 10 // bytes of a slot for each of few ranks
	backedPiece     = 16 << 10 // a stretch gets its memory in pieces of at least so many bytes
	mostLent        = 512      // slots, a power of two

	// Ways to go about an operation.
	largestFlat  = 8 << 10   // bytes that each of several ranks works out for itself
	mostFlat     = 8         // ranks that all look at each other in a barrier
	leastDirect  = 16 << 10  // bytes that ranks take from each other at least when they look where these lie
	leastInCrowd = 256 << 10 // the same in a broadcast by a rank that shares its processor with others
	spreadBlock  = 256 << 10 // what is copied to everybody at a time
	foldBlock    = 8 << 10   // bytes that are reduced at a time: they stay in the first-level cache
	leastPast    = 4 << 10   // bytes of the shortest copy that may go past the caches
	allCaches    = 24 << 20  // bytes, of all ranks' buffers together, from which on copies are not worth the room in the caches
)
