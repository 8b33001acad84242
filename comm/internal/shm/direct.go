package shm

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// Buffers that lie in a heap are used where they are: nobody puts them into slots. A rank whose buffer does shows where, as
// its first step, and stays in the operation until all who use it have done so. A rank with a buffer of another kind shows
// nothing, and goes about the operation as ever: if it has come to its first step, and there is no spot of this operation,
// there will be none. So ranks may differ.
//
// Reading is the smaller part of what it costs to use what another processor has written: see [cpu.Claim]. So ranks put what they
// have for each other into its place themselves, where they can (push), and claim what they only read (pull).
//
// A rank that gives an operation up takes the spot back, and says so: what lies there may change from then on, and what it has
// told of its steps is not what a rank without a spot would have. Others look whether it is still shown when they have read.

// begun is the first step of a rank that shows a buffer.
const begun = 1

// shown is where a rank's buffer in an operation lies.
type shown struct {
	op uint64 // the number of the operation; with givenUp, if that has been given up
	heap.Handle
}

const givenUp = 1 << 63

// A part is what a rank takes of others' buffers: n bytes from byte at on, in pieces of so many bytes, which in their slots
// begin at byte slot.
type part struct{ at, n, size, slot int }

// direct is what a team knows of heaps.
type direct struct {
	pushing habit // into others' buffers
	heap    *heap.Heap
	desks   []string // by rank
	last    []view   // the segment of each rank that was used last
	views   []view   // what is taken from each rank, of the operation with that number
}

// A view is memory of another rank's heap.
type view struct {
	id  uint64
	mem []byte
}

// Share lets the ranks use each other's heaps: mine is this one's, desks is where all get segments of each other's.
func (t *Team) Share(mine *heap.Heap, desks []string) {
	t.direct = direct{
		pushing: newHabit(0), heap: mine, desks: desks,
		last: make([]view, t.n), views: make([]view, t.n),
	}
}

// isDirect says whether ranks look for each other's buffers in an operation.
func (t *Team) isDirect(p part) bool { return p.n >= leastDirect && t.heap != nil }

// show lets others use buf where it lies, if they can, and says whether they do.
func (t *Team) show(buf []byte, p part) bool {
	if !t.isDirect(p) {
		return false
	}
	at, ok := t.heap.Handle(buf)
	if ok {
		s := &t.ranks[t.me].shows
		cpu.Store(&s.op, 0)
		cpu.Store(&s.Segment, at.Segment)
		cpu.Store(&s.Offset, at.Offset)
		cpu.Store(&s.op, t.op)
		t.done(begun)
	}
	return ok
}

// Abandon is for when the operation has failed: nobody must count on what this rank has shown.
func (t *Team) Abandon() {
	if s := &t.ranks[t.me].shows; cpu.LoadPlain(&s.op) == t.op {
		cpu.Store(&s.op, t.op|givenUp)
		cpu.Fence() // whatever the caller writes there from now on comes later
		t.heap.RetireRegions()
	}
}

func (t *Team) shows(r int) bool { return cpu.Load(&t.ranks[r].shows.op) == t.op }

// showsSoon is shows when r has begun. It waits for that, and fails if r has given the operation up.
func (t *Team) showsSoon(r int) (bool, error) {
	if err := t.wait(r, begun); err != nil {
		return false, err
	}
	switch cpu.Load(&t.ranks[r].shows.op) {
	case t.op:
		return true, nil
	case t.op | givenUp:
		return false, t.lost(r)
	default:
		return false, nil
	}
}

// look waits until r has begun, and returns what this rank takes from it where that lies in a heap, or else nil.
func (t *Team) look(r int, p part) ([]byte, error) {
	t.views[r].mem = nil
	if shows, err := t.showsSoon(r); !shows {
		return nil, err
	}
	s, last := &t.ranks[r].shows, &t.last[r]
	at := heap.Handle{Segment: cpu.Load(&s.Segment), Offset: cpu.Load(&s.Offset)}
	if shows, err := t.showsSoon(r); !shows { // it has found that others show nothing, and gone on
		return nil, err
	}
	if last.mem == nil || last.id != at.Segment {
		mem, err := t.heap.Attach(t.desks[r], at.Segment)
		if err != nil {
			return nil, &Unreachable{r, err}
		}
		*last = view{at.Segment, mem}
	}
	mem, err := within(last.mem, at.Offset, p)
	if err != nil {
		return nil, &Unreachable{r, err}
	}
	t.views[r] = view{t.op, mem}
	return mem, nil
}

// unsee forgets what has been looked at: those who show it may go on as soon as they like.
func (t *Team) unsee() {
	for r := range t.views {
		t.views[r].mem = nil
	}
}

// within is p of a buffer that begins at that byte of mem, as another rank says.
func within(mem []byte, offset uint64, p part) ([]byte, error) {
	size := uint64(len(mem))
	if offset > size || size-offset < uint64(p.at+p.n) {
		return nil, fmt.Errorf("there are no %d bytes from byte %d on in a segment of %d", p.at+p.n, offset, size)
	}
	from := int(offset) + p.at
	return mem[from : from+p.n : from+p.n], nil
}

// An Unreachable says that what another rank has shown cannot be had.
type Unreachable struct {
	Rank int
	Err  error
}

func (u *Unreachable) Error() string { return u.Err.Error() }
func (u *Unreachable) Unwrap() error { return u.Err }

// take takes piece number i of what r has for this rank to its place in dst, or all at once where r shows it.
func (t *Team) take(dst []byte, r, i int, p part) error {
	if t.isDirect(p) {
		if i == 0 {
			mem, err := t.look(r, p)
			if err != nil {
				return err
			}
			pull(dst, mem, t.outgrows(len(mem)))
			t.Received += uint64(len(mem))
		}
		if t.views[r].mem != nil {
			return nil
		}
	}
	if err := t.wait(r, filled(i)); err != nil {
		return err
	}
	t.get(cut(dst, i, p.size), t.slotOf(r, i)[p.slot:], p.n)
	return nil
}

// used is done, for a step after which the others may go on with what they have shown; it makes sure that this rank has not
// used anything else.
func (t *Team) used(step int) error {
	cpu.Fence() // all that it has read comes before
	for r := range t.views {
		if v := &t.views[r]; v.id == t.op && v.mem != nil && !t.shows(r) {
			return t.lost(r)
		}
	}
	t.done(step)
	return nil
}

// lost waits until it is known why r has given the operation up.
func (t *Team) lost(r int) error {
	if err := t.until(r, at(t.op+1, 0)); err != nil {
		return err
	}
	return fmt.Errorf("rank %d of the team has gone on without the others", r)
}

// release waits, if this rank has shown something, until all others have done step: then they need that no more.
func (t *Team) release(mine bool, step int) error {
	for d := 1; mine && d < t.n; d++ {
		if err := t.wait((t.me+d)%t.n, step); err != nil {
			return err
		}
	}
	return nil
}
