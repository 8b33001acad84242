package shm

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// A Heap is memory that this rank may share with others of its machine: its own, in segments that they get from its desk, and
// as much of theirs as it has been shown. It is let go of when its last user has released it.
type Heap struct {
	desk  *Desk // nil: nobody gets at this rank's memory
	token []byte
	own   atomic.Pointer[[]*area] // those that others can get, by address; never changed, only replaced

	mu    sync.Mutex
	users int // or gone
	areas []*area

	fetching sync.Mutex
	fetched  map[foreign]*Segment
}

// gone is the number of users of a heap that has been let go of.
const gone = -1

// foreign names a segment of another rank's heap.
type foreign struct {
	desk string
	id   uint64
}

// fetchTimeout is how long another rank may take to hand a segment over.
const fetchTimeout = 10 * time.Second

// ErrGone says that a heap has been let go of.
var ErrGone = errors.New("the heap is gone")

// NewHeap returns a heap without users; see [Heap.Hold]. Others get its segments from desk, if there is one, to which
// they prove that they know the token.
func NewHeap(desk *Desk, token []byte) *Heap {
	return &Heap{desk: desk, token: token, fetched: map[foreign]*Segment{}}
}

// Hold adds a user.
func (h *Heap) Hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
}

// Release ends a use of the heap; the last one ends the heap with all that is in it.
func (h *Heap) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users--; h.users > 0 {
		return
	}
	h.users = gone
	h.own.Store(nil)
	for _, a := range h.areas {
		if h.desk != nil {
			h.desk.Withdraw(a.id)
		}
		_ = a.segment.Close() // memory of its own: nothing can be wrong
	}
	h.fetching.Lock()
	defer h.fetching.Unlock()
	for _, s := range h.fetched {
		_ = s.Close()
	}
	h.areas, h.fetched = nil, nil
}

// Alloc returns n bytes, at least one, all zero and backed by memory, at the start of a page.
func (h *Heap) Alloc(n int) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == gone {
		return nil, ErrGone
	}
	if n > math.MaxInt-largePage || n >= largePage && n > available() {
		return nil, errNoMemory
	}
	unit := unitFor(n)
	for _, a := range h.areas {
		if a.unit == unit && !a.spent {
			if from, ok := a.room(n); ok {
				return a.cut(from, n)
			}
		}
	}
	a, err := h.grow(n, unit)
	if err != nil {
		return nil, err
	}
	return a.cut(0, n)
}

// grow adds an area that has room for n bytes, in such units, and the more addresses the more there are already.
func (h *Heap) grow(n, unit int) (*area, error) {
	size := leastArea
	for _, a := range h.areas {
		size += len(a.mem) / 2
	}
	a, err := newArea(roundUp(max(size, n), largePage), unit)
	if err != nil {
		return nil, err
	}
	a.id = rand.Uint64()
	h.areas = append(h.areas, a)
	if h.desk != nil && a.segment != nil {
		h.desk.Offer(a.id, a.segment)
		var own []*area
		for _, a := range h.areas {
			if a.segment != nil {
				own = append(own, a)
			}
		}
		slices.SortFunc(own, func(a, b *area) int { return cmp.Compare(a.base(), b.base()) })
		h.own.Store(&own)
	}
	return a, nil
}

// Free gives back what Alloc has returned at that address, and says whether there is such a thing.
func (h *Heap) Free(start unsafe.Pointer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.areas {
		at := uintptr(start) - a.base()
		if at >= uintptr(len(a.mem)) {
			continue
		}
		i, found := a.index(int(at))
		if found {
			a.free(i)
		}
		return found
	}
	return false
}

// Spoil says that others may still write to this rank's memory, against the rules: what is allocated from now on is elsewhere.
func (h *Heap) Spoil() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.areas {
		a.spent = true
	}
}

// A spot is where in the heap of a rank something lies.
type spot struct{ segment, offset uint64 }

// find tells where buf lies, if others can get at it.
func (h *Heap) find(buf []byte) (spot, bool) {
	if h == nil {
		return spot{}, false
	}
	own := h.own.Load()
	if own == nil || len(buf) == 0 {
		return spot{}, false
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	lo, hi := 0, len(*own) // areas before lo begin at or below at, those from hi on do not
	for lo < hi {
		if mid := (lo + hi) / 2; (*own)[mid].base() <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return spot{}, false
	}
	a := (*own)[lo-1]
	offset := at - a.base()
	if offset >= uintptr(len(a.mem)) || uintptr(len(buf)) > uintptr(len(a.mem))-offset {
		return spot{}, false
	}
	return spot{a.id, uint64(offset)}, true
}

// reach returns the segment of that number in the heap of the rank with the desk at that address.
func (h *Heap) reach(desk string, id uint64) ([]byte, error) {
	h.fetching.Lock()
	defer h.fetching.Unlock()
	key := foreign{desk, id}
	s := h.fetched[key]
	if s == nil {
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		var err error
		if s, err = Fetch(ctx, desk, h.token, id); err != nil {
			return nil, err
		}
		wantLargePages(s.Bytes())
		h.fetched[key] = s
	}
	return s.Bytes(), nil
}
