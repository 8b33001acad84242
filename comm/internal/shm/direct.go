package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Buffers that lie in a heap are used where they are: nobody puts them into slots. A rank whose buffer does shows where, as
// its first step, and stays in the operation until all who read it have done so. Who has a buffer of another kind shows
// nothing, and goes about it as ever: when it has come to its first step and there is no spot of this operation, there is
// none. So ranks may differ.
//
// A rank that gives an operation up takes the spot back, as what is there may change from then on. Others look whether it is
// still shown when they have read.

// begun is the first step of a rank that shows a buffer.
const begun = 1

// leastDirect is how many bytes ranks take from each other at least when they look for each other's buffers.
const leastDirect = 16 << 10

// shown is where a rank's buffer in an operation lies.
type shown struct {
	seq uint64 // of the operation
	spot
}

// A part is what a rank takes of others' buffers: n bytes from byte at on, in pieces of so many bytes, which in their slots
// begin at byte slot.
type part struct{ at, n, size, slot int }

// direct is what a team knows of buffers in heaps.
type direct struct {
	heap  *Heap
	desks []string // by rank
	last  []view   // the segment of each rank that has been used last
	views [][]byte // in this operation: what is taken from each rank, where that is in a heap
}

// A view is a segment in memory.
type view struct {
	id  uint64
	mem []byte
}

// Share lets the ranks use each other's heaps: heap is this one's, the others' are at the desks.
func (t *Team) Share(heap *Heap, desks []string) {
	t.direct = direct{heap: heap, desks: desks, last: make([]view, t.n), views: make([][]byte, t.n)}
}

// show lets others use buf where it lies, if they can, and says whether they do.
func (t *Team) show(buf []byte, p part) bool {
	if p.n < leastDirect {
		return false
	}
	at, ok := t.heap.find(buf)
	if ok {
		s := &t.ranks[t.me].shown
		s.spot = at
		atomic.StoreUint64(&s.seq, t.seq)
		t.done(begun)
	}
	return ok
}

// Abandon is instead of End where the operation has failed: others must not count on what this rank has shown.
func (t *Team) Abandon() {
	t.lasting = nil
	if s := &t.ranks[t.me].shown; s.seq == t.seq {
		atomic.StoreUint64(&s.seq, 0)
		t.heap.Spoil()
	}
}

// look waits until r has begun, and returns what this rank takes of its buffer if that is in a heap, or nil.
func (t *Team) look(r int, p part) ([]byte, error) {
	t.views[r] = nil
	if err := t.wait(r, begun); err != nil {
		return nil, err
	}
	s := &t.ranks[r].shown
	if atomic.LoadUint64(&s.seq) != t.seq {
		return nil, nil
	}
	at, last := s.spot, &t.last[r]
	if last.mem == nil || last.id != at.segment {
		mem, err := t.heap.reach(t.desks[r], at.segment)
		if err != nil {
			return nil, &Unreachable{r, err}
		}
		*last = view{at.segment, mem}
	}
	mem, err := cutOut(last.mem, at.offset+uint64(p.at), p.n)
	if err != nil {
		return nil, &Unreachable{r, err}
	}
	t.views[r] = mem
	return mem, nil
}

// An Unreachable says that what another rank has shown cannot be had.
type Unreachable struct {
	Rank int
	Err  error
}

func (u *Unreachable) Error() string { return u.Err.Error() }
func (u *Unreachable) Unwrap() error { return u.Err }

// piece waits until piece number i of what this rank takes from r is there, and returns where.
func (t *Team) piece(r, i int, p part) ([]byte, error) {
	if i == 0 && p.n >= leastDirect && t.heap != nil {
		if _, err := t.look(r, p); err != nil {
			return nil, err
		}
	}
	if p.n >= leastDirect && t.heap != nil && t.views[r] != nil {
		return cut(t.views[r], i, p.size), nil
	}
	if err := t.wait(r, filled(i)); err != nil {
		return nil, err
	}
	return t.slotOf(r, i)[p.slot:][:p.size], nil
}
