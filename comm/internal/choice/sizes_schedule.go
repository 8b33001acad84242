//go:build schedule

package choice

// Limits in memory, so little that short runs come to them.
const (
	LLEntrySize             = 4 * LineSize
	MostLLBarrier           = 2
	largestFlat             = 256
	largestFlatReduce       = 256
	largestFlatReduceShared = 512
)

// Registered is about buffers of comm.Alloc.
var Registered = InPlace{Least: 384, LeastRoot: 512}
