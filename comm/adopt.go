package comm

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/core"
)

// The memory of Alloc outlives its world if Rejoin closes that: the next world adopts it.

// detach makes w, which Rejoin is about to close, leave its memory.
func (l *lifetime) detach(w *world) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Heap.Detach(&l.memory)
	l.users = append(l.users, w.Peers...)
}

// adopt makes the memory that has been left that of w. The members of w have ended all that they did in the world before. Another process of
// that world may be about to write to this memory, unless it has ended.
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

// freeAdopted frees a buffer of Alloc that begins at start, if it is of a world that Rejoin has closed.
func freeAdopted(start unsafe.Pointer) bool {
	return life.memory.Free(start) || slices.ContainsFunc(life.worlds.all(), func(g *Group) bool { return g.world.Heap.Free(start) })
}
