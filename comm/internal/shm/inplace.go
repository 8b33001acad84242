package shm

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// Buffers in a heap are used in place: no rank copies them into slots. A rank with such a buffer exports it as its first step: it publishes the
// handle. The buffer is what others read, or in an all-gather or an all-to-all the output, to which they write. The rank stays in the operation
// until all are done with it. A rank with another buffer exports nothing, and uses slots. If a rank has done its first step without an
// export for this operation, there will be none. So some ranks may export while others do not.
//
// To write into another rank's buffer costs less than to read from it; see [cpu.Claim]. So ranks write what they have for others into
// its place themselves if they can (push), and claim the cache lines of what they read (pull).
//
// A rank that abandons an operation revokes its export. From then on its buffer may change, and its steps do not mean that it exports
// nothing. So after reading, others check whether the export is still there.

// exportStep is the first step of a rank that exports a buffer.
const exportStep = 1

// An export is where a rank's buffer in an operation lies.
type export struct {
	op uint64 // the number of the operation; with revoked, if the rank has abandoned it
	heap.Handle
}

const revoked = 1 << 63

// A span is what a rank uses of others' buffers: n bytes from byte at. Through slots it comes in chunks of size bytes, which begin at
// byte slot.
type span struct{ at, n, size, slot int }

// inPlace is the state of a team whose ranks use each other's heaps.
type inPlace struct {
	pushPolicy   copyPolicy      // for stores into others' buffers
	ctx          context.Context // ends when the group fails
	heap         *heap.Heap
	addresses    []string     // of acceptors, by rank
	lastAttached []attachment // by rank: the segment that was attached last; id is its own
	attached     []attachment // by rank: what this rank uses of its buffer; id is the operation's number
}

// An attachment is what this rank uses of another one's heap.
type attachment struct {
	id  uint64
	mem []byte
}

// Share lets the ranks use each other's heaps. mine is the heap of this rank, and addresses are those of all ranks' acceptors. No rank waits
// for another one's acceptor after ctx has ended.
func (t *Team) Share(ctx context.Context, mine *heap.Heap, addresses []string) {
	t.inPlace = inPlace{
		pushPolicy: newCopyPolicy(0), ctx: ctx, heap: mine, addresses: addresses,
		lastAttached: make([]attachment, t.n), attached: make([]attachment, t.n),
	}
}

// isInPlace reports whether ranks look for each other's exports in an operation.
func (t *Team) isInPlace(p span) bool { return p.n >= choice.Registered.Least && t.heap != nil }

// exportBuffer exports buf if it lies in the heap, and reports whether it has.
func (t *Team) exportBuffer(buf []byte, p span) bool {
	if !t.isInPlace(p) {
		return false
	}
	at, ok := t.heap.Handle(buf)
	if !ok {
		return false
	}
	s := &t.ranks[t.me].export
	cpu.Store(&s.op, 0)
	cpu.Store(&s.Segment, at.Segment)
	cpu.Store(&s.Offset, at.Offset)
	cpu.Store(&s.op, t.op)
	t.done(exportStep)
	return true
}

// Abandon ends an operation that has failed. It revokes the export of this rank.
func (t *Team) Abandon() {
	if s := &t.ranks[t.me].export; t.op > 0 && cpu.LoadPlain(&s.op) == t.op { // it may fail before the first operation
		cpu.Store(&s.op, t.op|revoked)
		cpu.Fence()            // the stores of the caller come after it
		t.heap.RetireRegions() // others may still write there
	}
}

func (t *Team) exports(r int) bool { return cpu.Load(&t.ranks[r].export.op) == t.op }

// awaitExport waits for r's first step, and returns where the buffer is that r exports, if it exports one. It fails if r has abandoned
// the operation.
func (t *Team) awaitExport(r int) (at heap.Handle, exports bool, err error) {
	if exports, err = t.isExporting(r); !exports {
		return at, false, err
	}
	s := &t.ranks[r].export
	at = heap.Handle{Segment: cpu.Load(&s.Segment), Offset: cpu.Load(&s.Offset)}
	exports, err = t.isExporting(r) // or r has found that others export nothing, and has continued
	return at, exports, err
}

// isExporting waits for r's first step, and reports whether r exports a buffer.
func (t *Team) isExporting(r int) (bool, error) {
	if err := t.wait(r, exportStep); err != nil {
		return false, err
	}
	switch cpu.Load(&t.ranks[r].export.op) {
	case t.op:
		return true, nil
	case t.op | revoked:
		return false, t.awaitFailure(r)
	default:
		return false, nil
	}
}

// attach waits for r's first step, and returns what this rank uses of r's buffer, or nil if r exports none that can be attached.
func (t *Team) attach(r int, p span) ([]byte, error) {
	t.attached[r].mem = nil
	at, exports, err := t.awaitExport(r)
	if !exports {
		return nil, err
	}
	last := &t.lastAttached[r]
	if last.mem == nil || last.id != at.Segment {
		mem, err := t.heap.Attach(t.ctx, t.addresses[r], at.Segment)
		if err != nil {
			return nil, &Unreachable{r, err}
		}
		*last = attachment{id: at.Segment, mem: mem}
	}
	mem, err := within(last.mem, at.Offset, p)
	if err != nil {
		return nil, &Unreachable{r, err}
	}
	t.attached[r] = attachment{id: t.op, mem: mem}
	return mem, nil
}

// detachAll forgets all attached buffers. Their ranks may continue at any time.
func (t *Team) detachAll() {
	for r := range t.attached {
		t.attached[r].mem = nil
	}
}

// within returns p of a buffer that begins at byte offset of mem. Another rank has named the offset, and is not trusted.
func within(mem []byte, offset uint64, p span) ([]byte, error) {
	size := uint64(len(mem))
	if offset > size || size-offset < uint64(p.at+p.n) {
		return nil, fmt.Errorf("there are no %d bytes from byte %d on in a segment of %d", p.at+p.n, offset, size)
	}
	from := int(offset) + p.at
	return mem[from : from+p.n : from+p.n], nil
}

// An Unreachable says that a buffer that another rank exports cannot be attached.
type Unreachable struct {
	Rank int
	Err  error
}

func (u *Unreachable) Error() string { return u.Err.Error() }
func (u *Unreachable) Unwrap() error { return u.Err }

// readExport copies what r has for this rank to dst, if r exports it.
func (t *Team) readExport(dst []byte, r int, p span) error {
	mem, err := t.attach(r, p)
	if err != nil {
		return err
	}
	t.pull(dst, mem, t.exceedsLastCache(len(mem)))
	t.Received += uint64(len(mem))
	return nil
}

// readChunk copies chunk i of what r has for this rank to its place in dst, or all at once if r exports it.
func (t *Team) readChunk(dst []byte, r, i int, p span) error {
	if t.isInPlace(p) {
		if i == 0 {
			if err := t.readExport(dst, r, p); err != nil {
				return err
			}
		}
		if t.attached[r].mem != nil {
			return nil
		}
	}
	if err := t.wait(r, filled(i)); err != nil {
		return err
	}
	whole := p.n
	if !t.exceedsLastCache(whole) {
		whole = 0
	}
	t.get(cut(dst, i, p.size), t.slotOf(r, i)[p.slot:], whole)
	return nil
}

// finishReading does a step after which the others may change their buffers. If one of them has abandoned the operation meanwhile, this
// rank may have read something else, and finishReading fails.
func (t *Team) finishReading(step int) error {
	cpu.Fence() // all loads come before it
	for r := range t.attached {
		if v := &t.attached[r]; v.id == t.op && v.mem != nil && !t.exports(r) {
			return t.awaitFailure(r)
		}
	}
	t.done(step)
	return nil
}

// awaitFailure waits until it is known why r has abandoned the operation.
func (t *Team) awaitFailure(r int) error {
	if err := t.waitClock(r, at(t.op+1, 0)); err != nil {
		return err
	}
	return fmt.Errorf("rank %d of the team has gone on without the others", r)
}

// awaitAll waits, if exported is set, until all others have done step and no longer need this rank's buffer.
func (t *Team) awaitAll(exported bool, step int) error {
	for d := 1; exported && d < t.n; d++ {
		if err := t.wait((t.me+d)%t.n, step); err != nil {
			return err
		}
	}
	return nil
}
