package shm

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// A Call is what ranks agree on when they make one: words that are equal on all of them.
type Call struct{ What, Root, Count uint64 }

// sum is a 32-bit checksum of c.
func (c Call) sum() uint32 {
	h := c.What*0x9e3779b97f4a7c15 ^ c.Root*0xff51afd7ed558ccd ^ c.Count*0xc4ceb9fe1a85ec53
	return uint32(h ^ h>>32)
}

// store sets c, which is shared, to v.
func (c *Call) store(v Call) {
	cpu.StorePlain(&c.What, v.What)
	cpu.StorePlain(&c.Root, v.Root)
	cpu.StorePlain(&c.Count, v.Count)
}

// load is c, which is shared.
func (c *Call) load() Call {
	return Call{cpu.LoadPlain(&c.What), cpu.LoadPlain(&c.Root), cpu.LoadPlain(&c.Count)}
}

// control is what a rank tells the others. It alone writes there, except for bell.
type control struct {
	clock uint64 // see at
	tag   uint64 // of the last operation that it has told of: number (its lower half), checksum of the call
	shows shown  // see show
	_     [3]uint64

	past [remembered]deed // the last operations that it has told of

	bell   uint32 // a futex, raised for this rank when it sleeps
	awaits uint32 // the rank that it sleeps for, from 1; 0 if it does not
	wakeAt uint64 // until that one's clock says so
	on     uint32 // the processor that it is on, from 1; 0: not known
	_      [11]uint32
}

// A deed is an operation that a rank has told of.
type deed struct {
	tag  uint64
	call Call
}

// remembered is how many operations back a rank's calls can be read: as far as it may be ahead of others, if they are short.
const remembered = 2 * entries

// header is the first of a team's segment.
type header struct {
	sleepers uint32 // how many ranks sleep
	_        [31]uint32
}

const pageSize = 4 << 10

// mailAt and slotsAt are where the mailboxes and the slots of a team of n begin.
func mailAt(n int) int {
	return wholePages(int(unsafe.Sizeof(header{}) + uintptr(n)*unsafe.Sizeof(control{})))
}
func slotsAt(n int) int { return mailAt(n) + wholePages(n*int(unsafe.Sizeof(mailbox{}))) }

func wholePages(n int) int { return (n + pageSize - 1) / pageSize * pageSize }

// Size is the bytes of the segment that a team of n needs.
func Size(n int) int { return slotsAt(n) + n*stretchSize(n) }

// A Team is this rank's part in the ranks of a group that share a segment. One goroutine at a time uses it.
type Team struct {
	segment *Segment
	n, me   int
	slot    int // the most bytes of one
	largest int // the most bytes of a value
	head    *header
	ranks   []*control
	boxes   []*mailbox

	patience
	crowd
	ways ways
	mail
	slots
	habit
	never atomic.Bool
	direct

	seq     uint64 // of the operation under way
	call    Call   // the operation under way, or the one before
	sum     uint64 // its checksum
	tag     uint64 // its number and checksum
	told    bool   // of it
	base    int    // the steps of the methods that have been part of it
	counted uint64 // what chunks was when the method under way began
	lasting Lasting
	seen    []uint64 // where other ranks' clocks are at least
	tagged  []uint64 // the last operation of other ranks that has been found to match

	Sent, Received uint64 // bytes, in this operation: shown to others, and taken from them
	Waited         bool   // in this operation: longer than it takes to be told

	sources [][]byte // room for gatherSources
	blocks  [][]byte // room for cutAll
	scratch []byte   // room for room
}

// A Lasting wait is one for rank that goes on for so long that somebody should ask what has become of it. It returns when d is
// over, or the reason why that is not to be waited for.
type Lasting func(rank int, d Doze) error

// New is the part of rank me in a team of n that shares segment, which it owns from now on. It goes by Ways, and by tuning, which
// is the same on all ranks.
func New(segment *Segment, n, me int, p Processors, tuning choice.Tuning, lasting Lasting) (*Team, error) {
	mem := segment.Bytes()
	if len(mem) != Size(n) {
		return nil, fmt.Errorf("segment of %d bytes for a team of %d: want %d", len(mem), n, Size(n))
	}
	segment.seal()
	if err := back(mem[:slotsAt(n)]); err != nil {
		return nil, err
	}
	box := func(r int) *mailbox {
		return (*mailbox)(unsafe.Pointer(&mem[mailAt(n)+r*int(unsafe.Sizeof(mailbox{}))]))
	}
	t := &Team{
		segment: segment, n: n, me: me, slot: slotSize(n), largest: partOf(slotSize(n), n), head: (*header)(unsafe.Pointer(&mem[0])),
		slots: newSlots(mem[slotsAt(n):], n), habit: newHabit(stretchSize(n)),
		patience: p.patience(), ways: chosen(n, tuning), lasting: lasting, seen: make([]uint64, n), tagged: make([]uint64, n),
		crowd: crowd{places: make([]uint32, 0, n)},
	}
	for r := range n {
		at := unsafe.Sizeof(header{}) + uintptr(r)*unsafe.Sizeof(control{})
		t.ranks = append(t.ranks, (*control)(unsafe.Pointer(&mem[at])))
		t.boxes = append(t.boxes, box(r))
	}
	return t, nil
}

// Close lets go of the segment. Nothing of the team is under way.
func (t *Team) Close() error { return t.segment.Close() }

// at is the time at which a rank has done step of operation seq, or has not begun it for step 0.
func at(seq uint64, step int) uint64 { return seq<<stepBits | uint64(step) }

const stepBits = 24

// Begin starts operation seq, the call of which is the same on all ranks. What follows is one of the methods below, or several
// with Next between them. The others learn of an operation's end with the next one: the clock is for steps that somebody may
// wait for, and to take its line from them twice an operation would cost more than a short one does.
func (t *Team) Begin(seq uint64, call Call) {
	t.seq, t.base, t.counted = seq, 0, t.chunks
	t.Sent, t.Received, t.Waited = 0, 0, false
	if call != t.call { // which is sooner seen than summed up
		t.call, t.sum = call, uint64(call.sum())
	}
	t.tag, t.told = seq<<32|t.sum, false
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
func (t *Team) time(step int) uint64 { return at(t.seq, t.base+step) }

// Call is the operation's.
func (t *Team) Call() Call { return t.call }

// done tells the others that this rank has done step.
func (t *Team) done(step int) {
	t.tell()
	now := t.time(step)
	cpu.StoreRelease(&t.ranks[t.me].clock, now)
	if cpu.Load32(&t.head.sleepers) != 0 {
		t.wakeAll(now)
	}
}

// tell lets the others know what the operation is, just before they look at the clock, which is in the same line.
func (t *Team) tell() {
	if !t.told {
		t.told = true
		did := &t.ranks[t.me].past[t.seq%remembered]
		did.call.store(t.call)
		cpu.StoreRelease(&did.tag, t.tag)
		cpu.StoreRelease(&t.ranks[t.me].tag, t.tag)
	}
}

// A Mismatch says that another rank has called something else.
type Mismatch struct {
	Rank int
	Call Call // what it has called
}

func (m *Mismatch) Error() string { return fmt.Sprintf("rank %d called something else", m.Rank) }

// match makes sure that r, if it has begun this rank's operation, has called the same.
func (t *Team) match(r int) error {
	if t.tagged[r] == t.seq {
		return nil
	}
	other := t.ranks[r]
	tag := cpu.Load(&other.tag)
	if tag == t.tag {
		t.tagged[r] = t.seq
		return nil
	}
	did := &other.past[t.seq%remembered] // it may be further on
	if tag = cpu.Load(&did.tag); tag>>32 == t.tag>>32 && tag != t.tag {
		return &Mismatch{Rank: r, Call: did.call.load()}
	}
	return nil
}

// wait waits until r has done step.
func (t *Team) wait(r, step int) error {
	if err := t.until(r, t.time(step)); err != nil {
		return err
	}
	return t.match(r)
}

// until waits for r's clock.
func (t *Team) until(r int, time uint64) error {
	if t.seen[r] >= time {
		return nil
	}
	now := cpu.Await(&t.ranks[r].clock, time, t.looks)
	if now < time && t.isCrowd() {
		now = t.makeRoom(r, time)
	}
	if now < time {
		var err error
		if now, err = t.patiently(r, time); err != nil {
			return err
		}
	}
	t.seen[r] = now
	return nil
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
