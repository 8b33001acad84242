//go:build !schedule

package shm

// How much there is of everything; see sizes_schedule.go for less.
const (
	// The LL protocol.
	llBufferSize = 8 << 10 // three entries at least: no entry lies where the one before it was
	llEntries    = 64      // in use at most: how far ranks get ahead of others in short operations

	recordsPerRank = 128 // how many operations a rank keeps records of

	// Slots.
	mostStaging    = 2 << 20
	leastStaging   = 64 << 10
	allStaging     = 16 << 20 // bytes, of all ranks together
	largestSlot    = 256 << 10
	slotForEach    = 64 << 10 // bytes of a slot for each of few ranks
	populateStep   = 16 << 10 // a staging buffer gets its memory in steps of at least so many bytes
	mostSlotsInUse = 512      // slots, a power of two

	spreadBlock      = 256 << 10 // what is copied to everybody at a time
	foldBlock        = 8 << 10   // bytes that are reduced at a time: they stay in the first-level cache
	leastMove        = 1 << 20   // bytes that are copied without slots, after which it can be seen that an operation goes on
	leastNonTemporal = 4 << 10   // bytes of the shortest copy that may use non-temporal stores
	allCaches        = 24 << 20  // bytes, of all ranks' buffers together, from which on copies bypass the caches
)
