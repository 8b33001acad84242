package comm

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// Alloc returns n zeros in memory that the ranks of a machine share. It is used like any other slice, and collectives on it,
// or on parts of it, of 16 KiB and more are several times as fast: ranks read and write each other's buffers where these are,
// and no byte moves twice. Buffers that live long and are sent often, such as gradients, belong there.
//
// Alloc is local. Ranks may differ in what they allocate, and in which buffers they call collectives with: those are as fast as
// the buffers allow. Where ranks do not share memory it is this process's own.
//
// The memory is the world's that g belongs to. It stays until [Free], or until that is closed, after which nobody may use it.
// When a collective on it has failed, what is in it is undefined, and stays so until then: others may still be at work on it.
func Alloc[T Element](g *Group, n int) ([]T, error) {
	if err := someGroup("Alloc", g); err != nil {
		return nil, err
	}
	var e T
	size := int(unsafe.Sizeof(e))
	switch {
	case n < 0 || n > math.MaxInt/size:
		return nil, badArgument("Alloc", "%d elements of %d bytes", n, size)
	case n == 0:
		return []T{}, nil
	}
	mem, err := g.world.Heap.Alloc(n * size)
	if errors.Is(err, heap.ErrReleased) {
		err = ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("comm: Alloc of %d bytes: %w", n*size, err)
	}
	return reduce.View[T](mem), nil
}

// Free gives memory back that [Alloc] has returned for a group of the same world: buf, or a part of it that begins where it does.
// No rank may be in a collective on it.
func Free[T Element](g *Group, buf []T) error {
	if err := someGroup("Free", g); err != nil {
		return err
	}
	if cap(buf) == 0 || g.world.Heap.Free(unsafe.Pointer(unsafe.SliceData(buf))) {
		return nil
	}
	return badArgument("Free", "no memory of Alloc begins at %p, or not any more", unsafe.SliceData(buf))
}
