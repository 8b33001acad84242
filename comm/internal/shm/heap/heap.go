// Package heap has registered memory: buffers of one rank that the other ranks of its machine use in place. It works like XPMEM: a
// [Handle] of a buffer names a segment of its rank's heap and an offset, and other ranks attach that segment.
package heap

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// A Heap has this rank's registered memory, and the segments of other ranks' heaps that it has attached. It ends when its last user has
// released it.
type Heap struct {
	acceptor *acceptor.Acceptor // nil: nobody can attach this rank's memory
	token    []byte
	exported atomic.Pointer[[]*region] // the regions that others can attach; replaced, never changed

	mu         sync.Mutex
	users      int // or the constant released
	regions    []*region
	detachedTo *Detached // what gets the regions when the heap ends; nil: nothing

	attachMu sync.Mutex
	attached map[remote]*segment.Segment
}

// released is the number of users of a heap that has ended.
const released = -1

// remote names a segment of another rank's heap.
type remote struct {
	address string
	segment uint64
}

// attachTimeout is how long another rank may take to pass a segment.
const attachTimeout = 10 * time.Second

// ErrReleased says that a heap has ended.
var ErrReleased = errors.New("the heap is gone")

// New returns a heap without users; see [Heap.Retain]. Other ranks, which must know the token, attach its segments through a, if there is
// one.
func New(a *acceptor.Acceptor, token []byte) *Heap {
	return &Heap{acceptor: a, token: token, attached: map[remote]*segment.Segment{}}
}

// Retain adds a user.
func (h *Heap) Retain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
}

// Release removes a user. The last one ends the heap with all that is in it, unless Detach has been called.
func (h *Heap) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users--; h.users > 0 {
		return
	}
	h.users = released
	h.exported.Store(nil)
	for _, r := range h.regions {
		if h.acceptor != nil {
			h.acceptor.Remove(r.id)
		}
	}
	if h.detachedTo != nil {
		h.detachedTo.take(h.regions)
	} else {
		closeAll(h.regions)
	}
	h.attachMu.Lock()
	defer h.attachMu.Unlock()
	for _, s := range h.attached {
		_ = s.Close()
	}
	h.regions, h.attached = nil, nil
}

// Alloc returns n zero bytes, at least one, at the start of a page. The kernel has allocated memory for them.
func (h *Heap) Alloc(n int) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == released {
		return nil, ErrReleased
	}
	if n > math.MaxInt-segment.LargePage || n >= segment.LargePage && n > available() {
		return nil, errNoMemory
	}
	unit := unitFor(n)
	for _, r := range h.regions {
		if r.unit == unit && !r.retired {
			if from, ok := r.firstFit(n); ok {
				return r.alloc(from, n)
			}
		}
	}
	r, err := h.grow(n, unit)
	if err != nil {
		return nil, err
	}
	return r.alloc(0, n)
}

// grow adds a region for n bytes, or more, in such units. The more regions there are already, the larger it is.
func (h *Heap) grow(n, unit int) (*region, error) {
	size := leastRegion
	for _, r := range h.regions {
		size += len(r.mem) / 2
	}
	r, err := newRegion(roundUp(max(size, n), segment.LargePage), unit)
	if err != nil {
		return nil, err
	}
	h.add(r)
	return r, nil
}

// add makes r one of the heap's regions, and lets others attach it. The mutex is held.
func (h *Heap) add(r *region) {
	r.id = rand.Uint64()
	h.regions = append(h.regions, r)
	if h.acceptor != nil && r.segment != nil {
		h.acceptor.Export(r.id, r.segment)
		exported := slices.DeleteFunc(slices.Clone(h.regions), func(r *region) bool { return r.segment == nil })
		h.exported.Store(&exported)
	}
}

// Free frees the buffer that Alloc has returned at an address, and reports whether there is one.
func (h *Heap) Free(start unsafe.Pointer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return freeIn(h.regions, start)
}

func freeIn(regions []*region, start unsafe.Pointer) bool {
	for _, r := range regions {
		if at, ok := r.offset(start); ok {
			i, found := r.index(at)
			if found {
				r.free(i)
			}
			return found
		}
	}
	return false
}

func closeAll(regions []*region) {
	for _, r := range regions {
		_ = r.segment.Close() // cannot fail: the mapping is the heap's own
	}
}

// RetireRegions makes Alloc use new regions from now on. It is called after a failure, when other ranks may still write to this rank's
// memory.
func (h *Heap) RetireRegions() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.regions {
		r.retired = true
	}
}

// A Handle names a byte in the heap of a rank.
type Handle struct{ Segment, Offset uint64 }

// Handle returns the handle of buf, and whether other ranks can attach it. There are few regions to look through, because they grow.
func (h *Heap) Handle(buf []byte) (Handle, bool) {
	if h == nil || len(buf) == 0 {
		return Handle{}, false
	}
	if exported := h.exported.Load(); exported != nil {
		for _, r := range *exported {
			if at, ok := r.offset(unsafe.Pointer(unsafe.SliceData(buf))); ok {
				return Handle{r.id, uint64(at)}, len(buf) <= len(r.mem)-at
			}
		}
	}
	return Handle{}, false
}

// Attach returns segment id of the heap of the rank whose acceptor is at address.
func (h *Heap) Attach(ctx context.Context, address string, id uint64) ([]byte, error) {
	h.attachMu.Lock()
	defer h.attachMu.Unlock()
	key := remote{address, id}
	s := h.attached[key]
	if s == nil {
		ctx, cancel := context.WithTimeout(ctx, attachTimeout)
		defer cancel()
		var err error
		if s, err = acceptor.Attach(ctx, address, h.token, id); err != nil {
			return nil, err
		}
		segment.AdviseLarge(s.Bytes())
		h.attached[key] = s
	}
	return s.Bytes(), nil
}
