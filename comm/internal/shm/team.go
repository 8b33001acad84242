package shm

import (
	"fmt"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// control is what a rank tells the others. It alone writes there, except for bell.
type control struct {
	clock uint64 // see at
	tag   uint64 // of the last operation that it has told of; see tagOf
	shows shown  // see show
	_     [3]uint64

	past [remembered]Deed // the last operations that it has told of

	wait wait.State
}

// header is the first of a team's segment.
type header struct {
	sleepers uint32 // how many ranks sleep
	_        [31]uint32
}

// mailAt and slotsAt are where the mailboxes and the slots of a team of n begin.
func mailAt(n int) int {
	return segment.WholePages(int(unsafe.Sizeof(header{}) + uintptr(n)*unsafe.Sizeof(control{})))
}
func slotsAt(n int) int { return mailAt(n) + segment.WholePages(n*int(unsafe.Sizeof(mailbox{}))) }

// Size is the bytes of the segment that a team of n needs.
func Size(n int) int { return slotsAt(n) + n*stretchSize(n) }

// A Team is this rank's part in the ranks of a group that share a segment. One goroutine at a time uses it.
type Team struct {
	segment *segment.Segment
	n, me   int
	slot    int // the most bytes of one
	largest int // the most bytes of a value
	head    *header
	ranks   []*control
	boxes   []*mailbox

	waiter wait.Waiter
	ways   ways
	mail
	slots
	habit
	direct

	op      uint64 // the number of the operation under way, or the last one, among the team's
	seq     uint64 // its number among the group's calls
	call    Call
	tag     uint64 // see tagOf
	told    bool   // of it
	free    uint64 // the last operation in which it need not look how far behind others are; see stayInReach
	base    int    // the steps of the methods that have been part of it
	counted uint64 // what chunks was when the method under way began
	lasting OnLongWait
	seen    []uint64 // where other ranks' clocks are at least
	agreed  []uint64 // the last operation up to which other ranks' calls are known to be this rank's

	Sent, Received uint64 // bytes, in this operation: shown to others, and taken from them
	Waited         bool   // in this operation: longer than it takes to be told

	sources [][]byte // room for gatherSources
	blocks  [][]byte // room for cutAll
	scratch []byte   // room for room
}

// OnLongWait is called when a wait for rank lasts so long that somebody should ask what has become of it. It returns nil when w is
// done, or the reason not to wait for that.
type OnLongWait func(rank int, w wait.LongWait) error

// New is the part of rank me in a team of n that shares segment, which it owns from now on. It goes by Ways, and by tuning, which
// is the same on all ranks.
func New(memory *segment.Segment, n, me int, p wait.Processors, tuning choice.Tuning, lasting OnLongWait) (*Team, error) {
	mem := memory.Bytes()
	if len(mem) != Size(n) {
		return nil, fmt.Errorf("segment of %d bytes for a team of %d: want %d", len(mem), n, Size(n))
	}
	memory.CloseFD()
	if err := segment.Populate(mem[:slotsAt(n)]); err != nil {
		return nil, err
	}
	box := func(r int) *mailbox {
		return (*mailbox)(unsafe.Pointer(&mem[mailAt(n)+r*int(unsafe.Sizeof(mailbox{}))]))
	}
	t := &Team{
		segment: memory, n: n, me: me, slot: slotSize(n), largest: partOf(slotSize(n), n), head: (*header)(unsafe.Pointer(&mem[0])),
		slots: newSlots(mem[slotsAt(n):], n), habit: newHabit(stretchSize(n)),
		ways: chosen(n, tuning), lasting: lasting, seen: make([]uint64, n), agreed: make([]uint64, n),
	}
	clocks, states := make([]*uint64, n), make([]*wait.State, n)
	for r := range n {
		at := unsafe.Sizeof(header{}) + uintptr(r)*unsafe.Sizeof(control{})
		t.ranks = append(t.ranks, (*control)(unsafe.Pointer(&mem[at])))
		t.boxes = append(t.boxes, box(r))
		clocks[r], states[r] = &t.ranks[r].clock, &t.ranks[r].wait
	}
	t.waiter.Init(p, me, clocks, states, &t.head.sleepers)
	return t, nil
}

// Close lets go of the segment. Nothing of the team is under way.
func (t *Team) Close() error { return t.segment.Close() }

// at is the time at which a rank has done step of operation op, or has come to it for step 0. After the largest number time goes on
// from 0; see [cpu.Reached].
func at(op uint64, step int) uint64 { return op<<stepBits | uint64(step) }

const stepBits = 24

// Begin starts the team's next operation, which is call number seq of the group. history is a digest of all the group's calls up to
// and including this one: the same on ranks that have made the same calls. What follows is one of the methods below, or several
// with Next between them. The others learn of an operation's end with the next one: the clock is for steps that somebody may
// wait for, and to take its line from them twice an operation would cost more than a short one does.
func (t *Team) Begin(seq uint64, call Call, history uint64) {
	t.op++
	t.seq, t.call, t.base, t.counted = seq, call, 0, t.chunks
	t.Sent, t.Received, t.Waited = 0, 0, false
	t.tag, t.told = tagOf(t.op, history), false
	if uint32(t.op) == 0 {
		t.forgetOldTimes()
	}
}

// Next lets one more method be part of the operation: its steps come after all those of the one before. Ranks that make the
// same calls have filled as many chunks, and so count alike. What a rank shows (direct.go) is of an operation as a whole: teams
// that Share have operations of one method.
func (t *Team) Next() {
	t.base += mostPerChunk*int(t.chunks-t.counted) + mostBeside
	t.counted = t.chunks
}

// A method takes at most so many steps: for every chunk, and beside.
const (
	mostPerChunk = 3
	mostBeside   = 32
)

// time is when a rank has done step of the method under way.
func (t *Team) time(step int) uint64 { return at(t.op, t.base+step) }

// Call is the operation's.
func (t *Team) Call() Call { return t.call }

// done tells the others that this rank has done step.
func (t *Team) done(step int) {
	t.tell()
	now := t.time(step)
	cpu.StoreRelease(&t.ranks[t.me].clock, now)
	if cpu.Load32(&t.head.sleepers) != 0 {
		t.waiter.WakeAll(now)
	}
}

// come tells the others that this rank has come to the operation, unless it has done a step of it.
func (t *Team) come() {
	t.tell()
	if now := at(t.op, 0); !cpu.Reached(cpu.Load(&t.ranks[t.me].clock), now) {
		cpu.StoreRelease(&t.ranks[t.me].clock, now)
		t.waiter.WakeAll(now)
	}
}

// wait waits until r has done step.
func (t *Team) wait(r, step int) error {
	if err := t.until(r, t.time(step)); err != nil {
		return err
	}
	return t.compareArrived(r)
}

// until waits for r's clock.
func (t *Team) until(r int, time uint64) error {
	if cpu.Reached(t.seen[r], time) {
		return nil
	}
	now := cpu.Await(&t.ranks[r].clock, time, t.waiter.Spins)
	if !cpu.Reached(now, time) && t.waiter.SharesCPU() {
		t.come()
		now = t.waiter.Yield(r, time)
	}
	if !cpu.Reached(now, time) {
		var err error
		if now, err = t.patiently(r, time); err != nil {
			return err
		}
	}
	t.seen[r] = now
	return nil
}

// patiently goes on waiting for r's clock.
func (t *Team) patiently(r int, target uint64) (uint64, error) {
	t.Waited = true
	t.come()
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
		if err := t.lasting(r, t.waiter.Long(r, target)); err != nil {
			return 0, err
		}
		begun = wait.Now()
	}
}

// A vacancy is when a slot may be used again: when its reader, or everybody, has come so far.
type vacancy struct {
	reader int
	time   uint64
}

// await waits until v is vacant.
func (t *Team) await(v *vacancy) error {
	for r := range t.n {
		if r == t.me || v.reader != r && v.reader != everybody {
			continue
		}
		if err := t.until(r, v.time); err != nil {
			return err
		}
	}
	return nil
}

// forgetOldTimes lets go of times that are so long ago that they would soon seem to be to come: those of other ranks, and those at
// which slots and entries have become vacant. Ranks are never so far apart that what is left could be as old.
func (t *Team) forgetOldTimes() {
	for r, other := range t.ranks {
		t.seen[r] = cpu.Load(&other.clock)
	}
	for t.slots.oldest < t.slots.newest && t.isVacant(&t.loans[t.slots.oldest%mostLent].until) {
		t.slots.oldest++
	}
	for t.mail.oldest < t.mail.newest && t.isVacant(&t.lent[t.mail.oldest%entries].until) {
		t.mail.oldest++
	}
}

// isVacant says whether v is vacant, as far as this rank has seen.
func (t *Team) isVacant(v *vacancy) bool {
	for r, seen := range t.seen {
		if r != t.me && (v.reader == r || v.reader == everybody) && !cpu.Reached(seen, v.time) {
			return false
		}
	}
	return true
}
