//go:build schedule

package choice

// Limits in memory, so little that short runs come to them.
const (
	LLEntrySize             = 4 * LineSize
	MostLLBarrier           = 2
	largestFlat             = 256
	largestFlatReduce       = 256
	largestFlatReduceShared = 512

	LeastInPlace     = 384 // bytes that ranks take from each other at least if they use buffers in place
	LeastRootInPlace = 512 // the same in a broadcast by a rank that shares its processor
)
