package shm

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/wait"
)

// control is the memory of a rank that all others read. The rank alone writes there, except for the doorbell in wait.
type control struct {
	clock  uint64 // see at
	flag   uint64 // of the last operation that it has published; see flagOf
	export export // see exportBuffer
	_      [3]uint64

	records [recordsPerRank]OpRecord // of the last operations that it has published

	wait wait.State // a control is whole pairs of cache lines
}

// header is at the beginning of a team's segment.
type header struct {
	sleepers uint32 // how many ranks are parked
	_        [31]uint32
}

// llAt and slotsAt are where the LL buffers and the staging buffers of a team of n begin.
func llAt(n int) int {
	return segment.WholePages(int(unsafe.Sizeof(header{}) + uintptr(n)*unsafe.Sizeof(control{})))
}
func slotsAt(n int) int { return llAt(n) + segment.WholePages(n*int(unsafe.Sizeof(llBuffer{}))) }

// Size is the bytes of the segment that a team of n needs.
func Size(n int) int { return slotsAt(n) + n*stagingSize(n) }

// A Team is the ranks of a group that share a segment, as one of them sees them. Only one goroutine at a time may use it.
type Team struct {
	segment   *segment.Segment
	n, me     int
	slot      int // the most bytes of a slot
	mostElem  int // the most bytes of an element
	header    *header
	ranks     []*control
	llBuffers []*llBuffer

	waiter wait.Waiter
	ways   ways
	llState
	slots
	copyPolicy
	inPlace

	moves atomic.Uint64 // see Moves
	moved int           // bytes that have been copied without slots since moves has changed

	op             uint64 // the number of the operation under way, or the last one, among the team's
	seq            uint64 // its number among the group's calls
	call           Call
	flag           uint64 // see flagOf
	published      bool   // whether this rank has published the operation
	skewBoundUntil uint64 // the last operation for which the skew is known to be bounded; see boundSkew
	methods        int    // before the one under way, in this operation
	base           int    // the steps of the methods before the one under way, in this operation
	chunksBefore   uint64 // the chunks of the methods before that
	onLongWait     OnLongWait
	seen           []uint64 // what other ranks' clocks have reached, at least
	agreed         []uint64 // up to which operation other ranks are known to have made this rank's calls

	Sent, Received uint64 // bytes, in this operation: written for others, and read from them
	Waited         bool   // in this operation: this rank had to yield or park

	sources [][]byte // scratch of awaitSources
	blocks  [][]byte // scratch of cutAll
	scratch []byte   // see scratchOf
	head    []byte   // scratch of exchange.sendShort
	copied  []byte   // scratch of operand
}

// OnLongWait is called when a wait for rank lasts so long that the caller should find out whether rank is still there. It returns nil
// when w is done, or the reason to wait no longer.
type OnLongWait func(rank int, w wait.LongWait) error

// New returns a team of n ranks for rank me. It owns memory, which the ranks share. Its algorithms are those that choose chooses, the same
// on all ranks.
func New(memory *segment.Segment, n, me int, p wait.Processors, choose choice.Chooser, onLongWait OnLongWait) (*Team, error) {
	mem := memory.Bytes()
	if len(mem) != Size(n) {
		return nil, fmt.Errorf("segment of %d bytes for a team of %d: want %d", len(mem), n, Size(n))
	}
	memory.CloseFD()
	if err := segment.Populate(mem[:slotsAt(n)]); err != nil {
		return nil, err
	}
	t := &Team{
		segment: memory, n: n, me: me, slot: slotSize(n), mostElem: slotPerRank(slotSize(n), n), header: (*header)(unsafe.Pointer(&mem[0])),
		slots: newSlots(mem[slotsAt(n):], n), copyPolicy: newCopyPolicy(stagingSize(n)),
		ways:       waysOf(choose, n),
		onLongWait: onLongWait, seen: make([]uint64, n), agreed: make([]uint64, n),
	}
	clocks, states := make([]*uint64, n), make([]*wait.State, n)
	for r := range n {
		at := unsafe.Sizeof(header{}) + uintptr(r)*unsafe.Sizeof(control{})
		t.ranks = append(t.ranks, (*control)(unsafe.Pointer(&mem[at])))
		t.llBuffers = append(t.llBuffers, (*llBuffer)(unsafe.Pointer(&mem[llAt(n)+r*int(unsafe.Sizeof(llBuffer{}))])))
		clocks[r], states[r] = &t.ranks[r].clock, &t.ranks[r].wait
	}
	t.waiter.Init(p, me, clocks, states, &t.header.sleepers)
	return t, nil
}

// Close unmaps the segment. No operation of the team is under way.
func (t *Team) Close() error { return t.segment.Close() }

// Begin starts the team's next operation, which is call number seq of the group. history is a digest of all the group's calls up to
// and including this one. Then the caller calls one of the methods that move or combine data, such as AllReduce, or several with Next
// between them. The clock does not show the end of an operation, only the beginning of the next one: it counts only steps for which other
// ranks may wait, because to take its cache line away from them twice would cost more than a short operation.
func (t *Team) Begin(seq uint64, call Call, history uint64) {
	t.op++
	t.seq, t.call, t.methods, t.base, t.chunksBefore = seq, call, 0, 0, t.chunks
	t.Sent, t.Received, t.Waited = 0, 0, false
	t.flag, t.published = flagOf(t.op, history), false
	if uint32(t.op) == 0 {
		t.forgetOldClocks()
	}
}

// Next makes one more method part of the operation. Its steps come after all steps of the method before it. Ranks that make the same
// calls have filled the same number of chunks, so all count alike. An exported buffer (inplace.go) belongs to the whole operation, so
// the operations of teams that Share have only one method.
func (t *Team) Next() {
	t.methods++
	t.moves.Add(1)
	t.base += stepsPerChunk*int(t.chunks-t.chunksBefore) + extraSteps
	t.chunksBefore = t.chunks
}

// A method takes at most so many steps for every chunk, and so many more.
const (
	stepsPerChunk = 3
	extraSteps    = 32
)

// Call is the call of the operation.
func (t *Team) Call() Call { return t.call }
