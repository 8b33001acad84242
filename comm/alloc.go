package comm

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// Alloc returns a slice of n zeros in memory that the ranks of a machine share. You use it like any other slice.
// Collectives of 16 KiB and more on it, or on a part of it, are several times as fast: ranks read and write each
// other's buffers in place, and no byte moves twice. Use it for buffers that live long and are sent often, such as
// gradients.
//
// Alloc is local: it sends nothing. Ranks may allocate different buffers, and may call one collective with different
// kinds of buffers, which is then as fast as the buffers allow. Where ranks do not share memory, the slice is in this
// process's own memory.
//
// The memory belongs to the world of g. It is valid until [MemFree], or until the world is closed. If a collective on
// it has failed, its contents are undefined from then on, because other ranks may still write there. [Rejoin] makes it
// memory of the next world: after that no rank writes there any more.
func Alloc[T Element](g *Group, n int) ([]T, error) {
	if err := checkGroup("Alloc", g); err != nil {
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

// MemFree frees memory that [Alloc] has returned, for whatever group. buf is the slice that Alloc has returned, or
// begins where that begins. No rank may have an operation on it under way.
func MemFree[T Element](buf []T) error { return free("MemFree", buf) }

// Free is [MemFree]. g does not matter, but must not be nil.
func Free[T Element](g *Group, buf []T) error {
	if err := checkGroup("Free", g); err != nil {
		return err
	}
	return free("Free", buf)
}

func free[T Element](op string, buf []T) error {
	if cap(buf) == 0 || process.Free(unsafe.Pointer(unsafe.SliceData(buf))) {
		return nil
	}
	return badArgument(op, "no memory of Alloc begins at %p, or not any more", unsafe.SliceData(buf))
}
