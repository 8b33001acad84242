package choice

// A Table says which algorithm ranks use in some surroundings, by operation and length, and in which sizes they move
// bytes. No code changes it.
type Table struct {
	Algorithms // also those that only a tuning chooses
	Rows       Rows
	Sizes
}

// Rows has the rows of each operation, in order of length.
type Rows map[string][]Row

// A Row is an algorithm for buffers up to a limit. The first row whose limit is not less than the bytes of a buffer is
// chosen. All rows work for any number of ranks and bytes, and so do algorithms that are in no row.
type Row struct {
	Algorithm
	UpTo Limit
}

// Sizes are numbers of bytes of messages.
type Sizes struct {
	Chunk       int // how many bytes of a message travel at once
	OwnChunk    int // the same where each rank has a processor
	LeastPiece  int // how many bytes of a long vector a rank sends to another machine in one piece, at least, if its stages overlap
	MostPiece   int // at most, and if they do not overlap
	MostJoined  int // of separate blocks that ranks copy, so that several travel as one message, where some are on one machine
	MostGrouped int // that the ranks of a machine send to another machine as one message of their leader
	MostOneWay  int // that go in one direction of a ring before some go in the other one
	RingMessage int // at most, of a message of a pipelined reduce-scatter around a ring
}

// An InPlace says from how many bytes on ranks that share memory use registered buffers, those of comm.Alloc, in place,
// instead of an algorithm. Registered is the table of that, and no code changes it.
type InPlace struct {
	Least     int // bytes that a rank takes from another
	LeastRoot int // the same in a broadcast by a rank that shares its processor
}

// Network has the algorithms of ranks on several machines, and of all whose place is unknown. Ranks of a machine share its
// network: on a ring, one of them sends to another machine, and in algorithms with fewer messages all of them do. So only
// short blocks are joined.
var Network = &Table{Messages, Rows{
	"all_reduce":     {{Doubling, fewSteps(16 << 10)}, {Halving, upTo(512 << 10)}, {Ring, forTwo(Any, 2<<20)}, {Bidirectional, nil}},
	"reduce":         {{Binomial, treeLimit}, {Pipeline, nil}},
	"broadcast":      {{Binomial, treeLimit}, {Pipeline, nil}},
	"all_gather":     {{Doubling, powerOfTwo(longestDoubled, Never)}, {Bruck, upTo(80 << 10)}, {Ring, forTwo(Any, Never)}, {Bidirectional, nil}},
	"reduce_scatter": {{Halving, powerOfTwo(256<<10, 1<<10)}, {Pairwise, pairwiseLimit}, {Pipeline, nil}},
	"all_to_all":     {{Bruck, shortBlocks(4)}, {Pairwise, nil}},
	"gather":         {{Binomial, shortBlocks(manyRanks)}, {Linear, nil}},
	"scatter":        {{Binomial, shortBlocks(manyRanks)}, {Linear, nil}},
	"barrier":        {{Dissemination, nil}},
	"nodes":          {{Leaders, upTo(64 << 10)}, {Rails, nil}},
	"scan":           {{Doubling, nil}},
}, Sizes{
	Chunk: ChunkSize, OwnChunk: networkChunk, LeastPiece: 64 << 10, MostPiece: 512 << 10, MostJoined: 8 << 10, MostGrouped: 16 << 10,
	MostOneWay: 2 << 20, RingMessage: ringMessage,
}}

// Near has the algorithms of ranks that are all on one machine. Their messages use no network, only processors,
// for which two directions of a ring are more work than one, and many messages more than few. No link can be overloaded
// by several senders, so each block goes straight to its owner. Four ranks on two processors gather 128 KiB in 68
// microseconds by doubling and in 92 around a ring, and 512 KiB in 450 and 300; all-reduces of 32 KiB take 67
// microseconds by doubling and 80 by halving, and those of 128 KiB 310 and 157. Messages through memory are copies
// themselves, so only short blocks are copied to be joined.
var Near = &Table{Messages, Rows{
	"all_reduce":     {{Doubling, fewSteps(64 << 10)}, {Halving, upTo(1 << 20)}, {Ring, nil}},
	"reduce":         {{Binomial, chunkTreeLimit}, {Pipeline, nil}},
	"broadcast":      {{Binomial, chunkTreeLimit}, {Pipeline, nil}},
	"all_gather":     {{Doubling, powerOfTwo(128<<10, Never)}, {Bruck, upTo(80 << 10)}, {Ring, nil}},
	"reduce_scatter": {{Halving, powerOfTwo(256<<10, 1<<10)}, {Pairwise, nil}},
	"all_to_all":     {{Bruck, shortBlocks(4)}, {Pairwise, nil}},
	"gather":         {{Binomial, shortBlocks(manyRanks)}, {Linear, nil}},
	"scatter":        {{Binomial, shortBlocks(manyRanks)}, {Linear, nil}},
	"barrier":        {{Dissemination, nil}},
	"nodes":          {{Leaders, upTo(64 << 10)}, {Rails, nil}},
	"scan":           {{Doubling, nil}},
}, Sizes{
	Chunk: ChunkSize, OwnChunk: ChunkSize, LeastPiece: 64 << 10, MostPiece: 512 << 10, MostJoined: 16 << 10, MostGrouped: 16 << 10,
	MostOneWay: 2 << 20, RingMessage: ringMessage,
}}

// Far has the algorithms of ranks on machines that are 2 ms or more away from each other. There, the number of
// messages that follow one another decides how long a call takes, until the links have much to carry. So each rank
// sends to every other one at once, up to what a link of 1 Gbit/s carries in a few of these latencies. Between eight
// machines 5 ms apart, an all-reduce of 64 B takes 1.2 latencies; around a ring, it would take 14.
var Far = &Table{Messages, Rows{
	"all_reduce": {
		{Pairwise, inAll(1 << 20)}, {Doubling, forTwo(2<<20, 512<<10)}, {Halving, each(256 << 10)}, {Ring, forTwo(Any, Never)},
		{Bidirectional, nil},
	},
	"reduce":         {{Linear, inAll(1 << 20)}, {Binomial, upTo(512 << 10)}, {Pipeline, nil}},
	"broadcast":      {{Linear, inAll(1 << 20)}, {Binomial, upTo(512 << 10)}, {Pipeline, nil}},
	"all_gather":     {{Pairwise, each(384 << 10)}, {Ring, forTwo(Any, Never)}, {Bidirectional, nil}},
	"reduce_scatter": {{Pairwise, each(256 << 10)}, {Pipeline, nil}},
	"all_to_all":     {{Pairwise, nil}},
	"gather":         {{Linear, nil}},
	"scatter":        {{Linear, nil}},
	"barrier":        {{Pairwise, nil}},
	"nodes":          {{Leaders, upTo(64 << 10)}, {Rails, nil}},
	"scan":           {{Doubling, nil}},
}, Sizes{
	Chunk: ChunkSize, OwnChunk: ChunkSize, LeastPiece: 512 << 10, MostPiece: 512 << 10, MostJoined: 8 << 10, MostGrouped: 16 << 10,
	MostOneWay: 2 << 20, RingMessage: ringMessage,
}}

// SharedMemory has the algorithms of ranks that share memory, and may have to share processors.
var SharedMemory = &Table{Memory, Rows{
	"all_reduce":     {{LL, mostLL}, {Flat, flatUpTo(largestFlat)}, {Shared, nil}},
	"reduce":         {{LL, mostLL}, {Flat, flatUpTo(largestFlatReduceShared)}, {Shared, nil}},
	"broadcast":      {{LL, mostLL}, {Slots, nil}},
	"all_gather":     {{LL, mostLLOfEach}, {Slots, nil}},
	"reduce_scatter": {{LL, mostLLToEach}, {Slots, nil}},
	"all_to_all":     {{LL, mostLLToEach}, {Slots, nil}},
	"gather":         {{LL, mostLLOfEach}, {Slots, nil}},
	"scatter":        {{LL, mostLLToEach}, {Slots, nil}},
	"barrier":        {{LL, llBarrierLimit}, {Dissemination, nil}},
}, Sizes{}}

// OwnProcessors has the algorithms of ranks that share memory, each of which has a processor. There it costs little to
// wait for each other, and much to read what another processor has written: 16 ranks combine 4 KiB in 100 microseconds
// if every rank reads all, and in 9 if they share the work. So only two ranks use the flat all-reduce, and a root
// combines less by itself.
var OwnProcessors = &Table{Memory, Rows{
	"all_reduce":     {{LL, mostLL}, {Flat, forTwo(Any, Never)}, {Shared, nil}},
	"reduce":         {{LL, mostLL}, {Flat, flatUpTo(largestFlatReduce)}, {Shared, nil}},
	"broadcast":      {{LL, mostLL}, {Slots, nil}},
	"all_gather":     {{LL, mostLLOfEach}, {Slots, nil}},
	"reduce_scatter": {{LL, mostLLToEach}, {Slots, nil}},
	"all_to_all":     {{LL, mostLLToEach}, {Slots, nil}},
	"gather":         {{LL, mostLLOfEach}, {Slots, nil}},
	"scatter":        {{LL, mostLLToEach}, {Slots, nil}},
	"barrier":        {{LL, llBarrierLimit}, {Dissemination, nil}},
}, Sizes{}}
