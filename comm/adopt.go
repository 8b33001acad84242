package comm

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/core"
)

// The memory of Alloc outlives its world if Rejoin closes that: the next world adopts it.

// detach makes w, which Rejoin is about to close, leave its memory of Alloc to l.
func (l *lifetime) detach(w *world) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Heap.Detach(&l.memory)
	l.users = append(l.users, w.Peers...)
}

// adopt gives w the memory of Alloc from the world before. The members of w have ended all operations there. But another process of that world
// may still live, and write to the memory: then adopt gives all buffers new memory, which that process has not attached.
func (l *lifetime) adopt(w *world) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lives := slices.ContainsFunc(l.users, func(p core.Peer) bool {
		return w.SharesMemory(p) && !slices.ContainsFunc(w.Peers, p.IsSameProcess) && !w.HasEnded(p)
	})
	if lives {
		if err := l.memory.Renew(); err != nil {
			return fmt.Errorf("memory of Alloc: %w", err)
		}
	}
	w.Heap.Adopt(&l.memory)
	l.users = nil
	return nil
}

// freeMemory frees the buffer of Alloc that begins at start, and reports whether there was one: in an open world, or in one that Rejoin has
// closed.
func freeMemory(start unsafe.Pointer) bool {
	return life.memory.Free(start) || slices.ContainsFunc(open.all(), func(g *Group) bool { return g.world.Heap.Free(start) })
}
