package shm

import (
	"fmt"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// control is what a rank shows the others. It alone writes there, except for the doorbell in wait.
type control struct {
	clock  uint64 // see at
	tag    uint64 // of the last operation that it has published; see tagOf
	export export // see exportBuffer
	_      [3]uint64

	records [recordsKept]OpRecord // of the last operations that it has published

	wait wait.State
}

// header is the first of a team's segment.
type header struct {
	sleepers uint32 // how many ranks sleep
	_        [31]uint32
}

// llAt and slotsAt are where the LL buffers and the staging buffers of a team of n begin.
func llAt(n int) int {
	return segment.WholePages(int(unsafe.Sizeof(header{}) + uintptr(n)*unsafe.Sizeof(control{})))
}
func slotsAt(n int) int { return llAt(n) + segment.WholePages(n*int(unsafe.Sizeof(llBuffer{}))) }

// Size is the bytes of the segment that a team of n needs.
func Size(n int) int { return slotsAt(n) + n*stagingSize(n) }

// A Team is this rank's part in the ranks of a group that share a segment. One goroutine at a time uses it.
type Team struct {
	segment   *segment.Segment
	n, me     int
	slot      int // the most bytes of one
	largest   int // the most bytes of a value
	head      *header
	ranks     []*control
	llBuffers []*llBuffer

	waiter wait.Waiter
	ways   ways
	llState
	slots
	copyPolicy
	inPlace

	op             uint64 // the number of the operation under way, or the last one, among the team's
	seq            uint64 // its number among the group's calls
	call           Call
	tag            uint64 // see tagOf
	published      bool   // whether this rank has published the operation
	unboundedUntil uint64 // up to which operation it need not look how far behind others are; see boundLead
	base           int    // the steps of the methods that have been part of it
	counted        uint64 // what chunks was when the method under way began
	onLongWait     OnLongWait
	seen           []uint64 // what other ranks' clocks have reached, at least
	agreed         []uint64 // up to which operation other ranks are known to have made this rank's calls

	Sent, Received uint64 // bytes, in this operation: written for others, and read from them
	Waited         bool   // in this operation: this rank had to yield or park

	sources [][]byte // room for gatherSources
	blocks  [][]byte // room for cutAll
	scratch []byte   // room for room
}

// OnLongWait is called when a wait for rank lasts so long that somebody should ask what has become of it. It returns nil when w is
// done, or the reason not to wait for that.
type OnLongWait func(rank int, w wait.LongWait) error

// New is the part of rank me in a team of n ranks. It owns memory, which they share, from now on. It chooses among Ways, and by
// tuning, which is the same on all ranks.
func New(memory *segment.Segment, n, me int, p wait.Processors, tuning choice.Tuning, lasting OnLongWait) (*Team, error) {
	mem := memory.Bytes()
	if len(mem) != Size(n) {
		return nil, fmt.Errorf("segment of %d bytes for a team of %d: want %d", len(mem), n, Size(n))
	}
	memory.CloseFD()
	if err := segment.Populate(mem[:slotsAt(n)]); err != nil {
		return nil, err
	}
	box := func(r int) *llBuffer {
		return (*llBuffer)(unsafe.Pointer(&mem[llAt(n)+r*int(unsafe.Sizeof(llBuffer{}))]))
	}
	t := &Team{
		segment: memory, n: n, me: me, slot: slotSize(n), largest: slotShareOf(slotSize(n), n), head: (*header)(unsafe.Pointer(&mem[0])),
		slots: newSlots(mem[slotsAt(n):], n), copyPolicy: newCopyPolicy(stagingSize(n)),
		ways: chosen(n, tuning), onLongWait: lasting, seen: make([]uint64, n), agreed: make([]uint64, n),
	}
	clocks, states := make([]*uint64, n), make([]*wait.State, n)
	for r := range n {
		at := unsafe.Sizeof(header{}) + uintptr(r)*unsafe.Sizeof(control{})
		t.ranks = append(t.ranks, (*control)(unsafe.Pointer(&mem[at])))
		t.llBuffers = append(t.llBuffers, box(r))
		clocks[r], states[r] = &t.ranks[r].clock, &t.ranks[r].wait
	}
	t.waiter.Init(p, me, clocks, states, &t.head.sleepers)
	return t, nil
}

// Close unmaps the segment. No operation of the team is under way.
func (t *Team) Close() error { return t.segment.Close() }

// at is the time at which a rank has done step of operation op, or has begun it for step 0. After the largest number time goes on
// from 0; see [cpu.Reached].
func at(op uint64, step int) uint64 { return op<<stepBits | uint64(step) }

const stepBits = 24

// Begin starts the team's next operation, which is call number seq of the group. history is a digest of all the group's calls up to
// and including this one, which is the same on ranks that have made the same calls. Then the caller calls one of the methods below,
// or several with Next between them. The clock does not show the end of an operation, only the begin of the next one: it is for
// steps for which somebody may wait, and to take its cache line away from the others twice would cost more than a short operation.
func (t *Team) Begin(seq uint64, call Call, history uint64) {
	t.op++
	t.seq, t.call, t.base, t.counted = seq, call, 0, t.chunks
	t.Sent, t.Received, t.Waited = 0, 0, false
	t.tag, t.published = tagOf(t.op, history), false
	if uint32(t.op) == 0 {
		t.forgetOldClocks()
	}
}

// Next makes one more method part of the operation. Its steps come after all those of the one before. Ranks that make the same
// calls have filled as many chunks, and so count alike. An exported buffer (inplace.go) belongs to the whole operation, so the
// operations of teams that Share have only one method.
func (t *Team) Next() {
	t.base += mostPerChunk*int(t.chunks-t.counted) + mostBeside
	t.counted = t.chunks
}

// A method takes at most so many steps for every chunk, and so many more.
const (
	mostPerChunk = 3
	mostBeside   = 32
)

// time is when a rank has done step of the method under way.
func (t *Team) time(step int) uint64 { return at(t.op, t.base+step) }

// Call is the call of the operation.
func (t *Team) Call() Call { return t.call }

// done advances this rank's clock: it has done step.
func (t *Team) done(step int) {
	t.publish()
	now := t.time(step)
	cpu.StoreRelease(&t.ranks[t.me].clock, now)
	if cpu.Load32(&t.head.sleepers) != 0 {
		t.waiter.WakeAll(now)
	}
}

// arrive advances this rank's clock to the begin of the operation, unless it has done a step of it.
func (t *Team) arrive() {
	t.publish()
	if now := at(t.op, 0); !cpu.Reached(cpu.Load(&t.ranks[t.me].clock), now) {
		cpu.StoreRelease(&t.ranks[t.me].clock, now)
		t.waiter.WakeAll(now)
	}
}

// wait waits until r has done step.
func (t *Team) wait(r, step int) error {
	if err := t.waitClock(r, t.time(step)); err != nil {
		return err
	}
	return t.compareArrived(r)
}

// waitClock waits until r's clock says time.
func (t *Team) waitClock(r int, time uint64) error {
	if cpu.Reached(t.seen[r], time) {
		return nil
	}
	now := cpu.Await(&t.ranks[r].clock, time, t.waiter.Spins)
	if !cpu.Reached(now, time) && t.waiter.SharesCPU() {
		t.arrive()
		now = t.waiter.Yield(r, time)
	}
	if !cpu.Reached(now, time) {
		var err error
		if now, err = t.waitLong(r, time); err != nil {
			return err
		}
	}
	t.seen[r] = now
	return nil
}

// waitLong goes on waiting for r's clock after the first spins.
func (t *Team) waitLong(r int, target uint64) (uint64, error) {
	t.Waited = true
	t.arrive()
	begun := wait.Now()
	for i := 0; ; i++ {
		if now := t.waiter.Spin(r, target); cpu.Reached(now, target) {
			return now, nil
		}
		if err := t.compare(r); err != nil {
			return 0, err
		}
		waited := wait.Now().Sub(begun)
		if waited < t.waiter.Alert {
			t.waiter.Pause(i, r, target, waited)
			continue
		}
		if err := t.onLongWait(r, t.waiter.Long(r, target)); err != nil {
			return 0, err
		}
		begun = wait.Now()
	}
}

// A reuse is when memory can be reused: when the clock of its reader, or of everybody, says time.
type reuse struct {
	reader int
	time   uint64
}

// awaitReaders waits until memory can be reused.
func (t *Team) awaitReaders(v *reuse) error {
	for r := range t.n {
		if r == t.me || v.reader != r && v.reader != everybody {
			continue
		}
		if err := t.waitClock(r, v.time); err != nil {
			return err
		}
	}
	return nil
}

// forgetOldClocks replaces times that are so old that they would soon seem to be in the future: what other ranks' clocks have
// reached, and when slots and entries can be reused. Ranks are never so far apart that the remaining times could be as old.
func (t *Team) forgetOldClocks() {
	for r, other := range t.ranks {
		t.seen[r] = cpu.Load(&other.clock)
	}
	for t.slots.oldest < t.slots.newest && t.isReusable(&t.slots.inUse[t.slots.oldest%mostSlotsInUse].reuse) {
		t.slots.oldest++
	}
	for t.llState.oldest < t.llState.newest && t.isReusable(&t.llState.inUse[t.llState.oldest%llEntries].reuse) {
		t.llState.oldest++
	}
}

// isReusable says whether memory can be reused, as far as this rank has seen.
func (t *Team) isReusable(v *reuse) bool {
	for r, seen := range t.seen {
		if r != t.me && (v.reader == r || v.reader == everybody) && !cpu.Reached(seen, v.time) {
			return false
		}
	}
	return true
}
