package worker

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/core"
)

// detach makes w, which next is about to close, leave its memory of Alloc to the next world.
func (p *Process) detach(w *World) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Heap.Detach(&p.memory)
	p.attached = append(p.attached, w.Peers...)
}

// adopt gives w the memory of Alloc from the world before. The members of w have ended all operations there. But another process of that world
// may still live, and write to the memory: then adopt gives all buffers new memory, which that process has not attached.
func (p *Process) adopt(w *World) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	lives := slices.ContainsFunc(p.attached, func(user core.Peer) bool {
		return w.SharesMemory(user) && !slices.ContainsFunc(w.Peers, user.IsSameProcess) && !w.HasEnded(user)
	})
	if lives {
		if err := p.memory.Renew(); err != nil {
			return fmt.Errorf("memory of Alloc: %w", err)
		}
	}
	w.Heap.Adopt(&p.memory)
	p.attached = nil
	return nil
}

// Free frees the buffer of Alloc that begins at start, and reports whether there was one: in an open world, or in one that has been closed and
// whose memory is kept.
func (p *Process) Free(start unsafe.Pointer) bool {
	return p.memory.Free(start) || p.unfreed.Free(start) || slices.ContainsFunc(p.open(), func(w *World) bool { return w.Heap.Free(start) })
}
