//go:build !schedule

package choice

// Limits in memory; see sizes_schedule.go for less.
const (
	LLEntrySize       = 40 * LineSize // at most: an entry of the LL protocol
	MostLLBarrier     = 8             // ranks that all read from each other in a barrier
	largestFlat       = 8 << 10       // bytes that each of several ranks combines by itself in an all-reduce
	largestFlatReduce = 16 << 10      // bytes that a root combines by itself: 8 ranks took 8 us for 16 KiB, and 10 if they shared the work

	// The same as largestFlatReduce, if ranks share processors. To share the work, they would have to wait for each
	// other twice more: 4 ranks on two processors took 11 us for 32 KiB instead of 15, and 8 ranks 23 instead of 33.
	largestFlatReduceShared = 64 << 10
)

// Registered is about buffers of comm.Alloc.
var Registered = InPlace{Least: 16 << 10, LeastRoot: 256 << 10}
