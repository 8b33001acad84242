package shm

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A Call is what ranks agree on when they make one: words that are equal on all of them.
type Call [3]uint64

// sum is a 32-bit checksum of c.
func (c Call) sum() uint32 {
	h := c[0]*0x9e3779b97f4a7c15 ^ c[1]*0xff51afd7ed558ccd ^ c[2]*0xc4ceb9fe1a85ec53
	return uint32(h ^ h>>32)
}

// control is what a rank tells the others. It alone writes there, except for bell.
type control struct {
	clock uint64             // see at
	tags  [remembered]uint64 // of the last operations: number (its lower half), checksum of the call
	_     [3]uint64

	calls [remembered]Call // of the same operations
	_     [4]uint64

	bell   uint32 // a futex, raised for this rank when it sleeps
	awaits uint32 // the rank that it sleeps for, from 1; 0 if it does not
	wakeAt uint64 // until that one's clock says so
	_      [6]uint64
}

// remembered is how many operations back a rank's calls can be read.
const remembered = 4

// header is the first of a team's segment.
type header struct {
	sleepers uint32 // how many ranks sleep
	_        [31]uint32
}

const (
	slotsPerRank = 4
	largestSlot  = 256 << 10
	smallestSlot = 16 << 10
	allSlots     = 16 << 20 // bytes, of all ranks together
	pageSize     = 4 << 10
	backedPiece  = 4 * pageSize // a slot gets its memory in pieces of this many bytes
)

// slotSize is the bytes of a slot in a team of n.
func slotSize(n int) int {
	size := largestSlot
	for size > smallestSlot && n*slotsPerRank*size > allSlots {
		size /= 2
	}
	return size
}

// slotsAt is where the slots of a team of n begin.
func slotsAt(n int) int {
	used := int(unsafe.Sizeof(header{}) + uintptr(n)*unsafe.Sizeof(control{}))
	return (used + pageSize - 1) / pageSize * pageSize
}

// Size is the bytes of the segment that a team of n needs.
func Size(n int) int { return slotsAt(n) + n*slotsPerRank*slotSize(n) }

// A Team is this rank's part in the ranks of a group that share a segment. One goroutine at a time uses it.
type Team struct {
	segment *Segment
	n, me   int
	slot    int // bytes
	head    *header
	ranks   []*control
	slots   []byte

	patience
	never atomic.Bool

	seq     uint64 // of the operation under way
	tag     uint64 // its number and checksum
	lasting func(rank int, d Doze) error
	chunks  uint64 // how many have been through the slots; the next one's place
	free    [slotsPerRank]vacancy
	backed  [slotsPerRank]int // bytes of this rank's slots that have memory behind them
	seen    []uint64          // other ranks' clocks when last read
	tagged  []uint64          // the last operation of other ranks that has been found to match

	Sent, Received uint64 // bytes, in this operation: shown to others, and taken from them
	Waited         bool   // in this operation: longer than it takes to be told

	sources [][]byte // room for gatherSources
	scratch []byte   // room for room
}

// New is the part of rank me in a team of n that shares segment, which it owns from now on.
func New(segment *Segment, n, me int, p Processors) (*Team, error) {
	mem := segment.Bytes()
	if len(mem) != Size(n) {
		return nil, fmt.Errorf("segment of %d bytes for a team of %d: want %d", len(mem), n, Size(n))
	}
	segment.seal()
	if err := back(mem[:slotsAt(n)]); err != nil {
		return nil, err
	}
	t := &Team{
		segment: segment, n: n, me: me, slot: slotSize(n), head: (*header)(unsafe.Pointer(&mem[0])), slots: mem[slotsAt(n):],
		patience: p.patience(n), seen: make([]uint64, n), tagged: make([]uint64, n),
	}
	for r := range n {
		at := unsafe.Sizeof(header{}) + uintptr(r)*unsafe.Sizeof(control{})
		t.ranks = append(t.ranks, (*control)(unsafe.Pointer(&mem[at])))
	}
	return t, nil
}

// Close lets go of the segment. Nothing of the team is under way.
func (t *Team) Close() error { return t.segment.Close() }

// at is the time at which a rank has done step of operation seq, or has not begun it for step 0.
func at(seq uint64, step int) uint64 { return seq<<stepBits | uint64(step) }

const stepBits = 24

// Begin starts operation seq, the call of which is the same on all ranks. What begins is one of the methods below, then End.
// lasting is called when a wait for another rank lasts; it returns when d is over, or the reason why that is not to be waited
// for.
func (t *Team) Begin(seq uint64, call Call, lasting func(rank int, d Doze) error) {
	t.seq, t.lasting = seq, lasting
	t.Sent, t.Received, t.Waited = 0, 0, false
	t.tag = seq<<32 | uint64(call.sum())
	me := t.ranks[t.me]
	me.calls[seq%remembered] = call
	cpu.StoreRelease(&me.tags[seq%remembered], t.tag)
}

// End ends the operation.
func (t *Team) End() {
	t.advance(at(t.seq+1, 0))
	t.lasting = nil
}

// done tells the others that this rank has done step.
func (t *Team) done(step int) { t.advance(at(t.seq, step)) }

func (t *Team) advance(now uint64) {
	cpu.StoreRelease(&t.ranks[t.me].clock, now)
	if atomic.LoadUint32(&t.head.sleepers) != 0 {
		t.wakeAll(now)
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
	tag := atomic.LoadUint64(&t.ranks[r].tags[t.seq%remembered])
	if tag>>32 != t.tag>>32 {
		return nil // not begun, or long over
	}
	if tag != t.tag {
		return &Mismatch{Rank: r, Call: t.ranks[r].calls[t.seq%remembered]}
	}
	t.tagged[r] = t.seq
	return nil
}

// wait waits until r has done step.
func (t *Team) wait(r, step int) error {
	if err := t.until(r, at(t.seq, step)); err != nil {
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

// own is this rank's slot for chunk number i of the operation, free for size bytes to be written. It is free again for
// another one when reader has done step.
func (t *Team) own(i, size, step, reader int) ([]byte, error) {
	k := (t.chunks + uint64(i)) % slotsPerRank
	v := &t.free[k]
	for r := range t.n {
		if r == t.me || v.reader != r && v.reader != everybody {
			continue
		}
		if err := t.until(r, v.time); err != nil {
			return nil, err
		}
	}
	*v = vacancy{reader: reader, time: at(t.seq, step)}
	slot := t.slotOf(t.me, i)
	if has := t.backed[k]; has < size {
		want := min((size+backedPiece-1)/backedPiece*backedPiece, t.slot)
		if err := back(slot[has:want]); err != nil {
			return nil, err
		}
		t.backed[k] = want
	}
	return slot, nil
}

// slotOf is r's slot for chunk number i of the operation.
func (t *Team) slotOf(r, i int) []byte {
	k := (t.chunks + uint64(i)) % slotsPerRank
	from := (r*slotsPerRank + int(k)) * t.slot
	return t.slots[from : from+t.slot : from+t.slot]
}
