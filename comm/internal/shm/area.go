package shm

import (
	"cmp"
	"os"
	"slices"
	"unsafe"
)

// An area is a segment of the heap, from which memory is cut.
type area struct {
	id      uint64
	mem     []byte
	segment *Segment // nil: nobody else has it
	unit    int      // bytes: extents begin at multiples of it, and nobody else has the rest of their last one
	used    []extent // by place
	spent   bool     // nothing is cut from it any more
}

// An extent is bytes of an area that are in use.
type extent struct{ from, to int }

const (
	largePage   = 2 << 20
	sharedLarge = 64 << 10 // what has at least this many bytes is in large pages, which it may have to share
	leastArea   = 64 << 20 // bytes of addresses; memory is taken only for what is in use
)

// unitFor is in what units memory for n bytes is cut: the shorter ones begin at any page, or in any large one.
func unitFor(n int) int {
	switch {
	case n >= largePage:
		return largePage
	case n >= sharedLarge:
		return sharedLarge
	default:
		return os.Getpagesize()
	}
}

func (a *area) base() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(a.mem))) }

// room finds the first n bytes of a that are not in use.
func (a *area) room(n int) (from int, ok bool) {
	for _, e := range a.used {
		if e.from-from >= n {
			break
		}
		from = roundUp(e.to, a.unit)
	}
	return from, len(a.mem)-from >= n
}

// cut takes n bytes, which are not in use, with memory behind them.
func (a *area) cut(from, n int) ([]byte, error) {
	i, _ := a.index(from)
	a.used = slices.Insert(a.used, i, extent{from, from + n})
	backLarge(a.mem[from : from+n/largePage*largePage])
	if err := back(a.mem[from:min(roundUp(from+n, os.Getpagesize()), len(a.mem))]); err != nil {
		a.free(i)
		return nil, err
	}
	return a.mem[from : from+n : from+n], nil
}

// index is which of a's extents in use begins there, or where one would be.
func (a *area) index(from int) (i int, found bool) {
	return slices.BinarySearchFunc(a.used, from, func(e extent, from int) int { return cmp.Compare(e.from, from) })
}

// free lets go of the extent of that index, and of the memory behind it.
func (a *area) free(i int) {
	from, end := a.used[i].from, min(roundUp(a.used[i].to, a.unit), len(a.mem))
	a.used = slices.Delete(a.used, i, i+1)
	if err := a.segment.punch(from, end-from); err != nil {
		clear(a.mem[from:end])
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
