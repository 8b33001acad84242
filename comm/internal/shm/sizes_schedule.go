//go:build schedule

package shm

// How much there is of everything; so little that short runs come to its ends. Other tests want more.
const (
	// The LL protocol.
	llBufferSize = 1 << 10 // three entries at least: no entry lies where the one before it was
	llEntries    = 4       // in use at most: how far ranks get ahead of others in short operations

	recordsPerRank = 16 // how many operations a rank keeps records of

	// Slots.
	mostStaging    = 1 << 10
	leastStaging   = 1 << 10
	allStaging     = 1 << 20 // bytes, of all ranks together
	largestSlot    = 256
	slotForEach    = 128     // bytes of a slot for each of few ranks
	populateStep   = 1 << 10 // a staging buffer gets its memory in steps of at least so many bytes
	mostSlotsInUse = 16      // slots, a power of two

	spreadBlock      = 256     // what is copied to everybody at a time
	foldBlock        = 128     // bytes that are reduced at a time: they stay in the first-level cache
	leastMove        = 1 << 20 // bytes that are copied without slots, after which it can be seen that an operation goes on
	leastNonTemporal = 128     // bytes of the shortest copy that may use non-temporal stores
	allCaches        = 3 << 10 // bytes, of all ranks' buffers together, from which on copies bypass the caches
)
