package heap

import (
	"context"
	"slices"
	"sync"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// A Detached has the regions of heaps that have ended, with the buffers in them. Another heap can adopt them.
type Detached struct {
	Discards   bool // it frees all regions that it gets
	UntilFreed bool // it frees a region once all buffers in it have been freed

	mu       sync.Mutex
	regions  []*region
	heaps    int           // how many will leave their regions here, and have not ended
	detached chan struct{} // closed when heaps is 0
}

// Detach makes the heap leave its regions to m when it ends.
func (h *Heap) Detach(m *Detached) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == released || h.detachedTo != nil {
		return
	}
	h.detachedTo = m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heaps == 0 {
		m.detached = make(chan struct{})
	}
	m.heaps++
}

func (m *Detached) take(regions []*region) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Discards {
		closeAll(regions)
	} else {
		m.regions = append(m.regions, regions...)
		m.closeUnused()
	}
	if m.heaps--; m.heaps == 0 {
		close(m.detached)
	}
}

// Await waits until all heaps that leave their regions to m have ended.
func (m *Detached) Await(ctx context.Context) error {
	m.mu.Lock()
	detached := m.detached
	m.mu.Unlock()
	if detached == nil {
		return nil
	}
	select {
	case <-detached:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Free is Heap.Free.
func (m *Detached) Free(start unsafe.Pointer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := freeIn(m.regions, start)
	m.closeUnused()
	return found
}

// closeUnused frees regions without buffers, if that is wanted. The mutex is held.
func (m *Detached) closeUnused() {
	if m.UntilFreed {
		m.regions = slices.DeleteFunc(m.regions, func(r *region) bool {
			if len(r.used) > 0 {
				return false
			}
			closeAll([]*region{r})
			return true
		})
	}
}

// Adopt gives all regions of m to h, which is new. Buffers stay at their addresses.
func (h *Heap) Adopt(m *Detached) {
	m.mu.Lock()
	regions := m.regions
	m.regions = nil
	m.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range regions {
		r.retired = false
		h.add(r)
	}
}

// Renew gives all buffers new memory that no other process has attached, at the same addresses and with the same contents. If it fails, only
// some buffers have new memory.
func (m *Detached) Renew() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.regions {
		if err := r.renew(); err != nil {
			return err
		}
	}
	return nil
}

func (r *region) renew() error {
	if r.segment == nil {
		return nil
	}
	s, err := segment.Create(len(r.mem))
	if err != nil {
		return err
	}
	used := r.used
	fresh := &region{mem: s.Bytes(), segment: s, unit: r.unit}
	if r.unit >= sharedLarge {
		segment.AdviseLarge(s.Bytes())
	}
	for _, e := range used {
		buf, err := fresh.alloc(e.from, e.to-e.from)
		if err != nil {
			_ = s.Close()
			return err
		}
		copy(buf, r.mem[e.from:e.to])
	}
	if err := r.segment.Replace(s); err != nil {
		_ = s.Close()
		return err
	}
	return nil
}
