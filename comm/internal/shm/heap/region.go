package heap

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// A region is a segment of the heap, in which buffers are allocated.
type region struct {
	id      uint64
	mem     []byte
	segment *segment.Segment // nil: no other process can attach it
	unit    int              // extents begin at multiples of so many bytes
	used    []extent         // by offset
	retired bool             // Alloc no longer uses it
}

// An extent is the bytes of a buffer in a region.
type extent struct{ from, to int }

const (
	sharedLarge = 64 << 10 // the bytes of the shortest buffer in large pages, which it may share with others
	leastRegion = 64 << 20 // bytes of addresses; only buffers in use take memory
)

// errNoMemory says that there is less memory than asked for.
var errNoMemory = os.NewSyscallError("madvise", syscall.ENOMEM)

// newRegion makes a region of size bytes. If the system refuses segments, no other process can attach it.
func newRegion(size, unit int) (*region, error) {
	s, err := segment.Create(size)
	switch {
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		return &region{mem: make([]byte, size), unit: unit}, nil
	case err != nil:
		return nil, err
	}
	if unit >= sharedLarge {
		segment.AdviseLarge(s.Bytes())
	}
	return &region{mem: s.Bytes(), segment: s, unit: unit}, nil
}

// unitFor returns the unit in which n bytes are allocated. Short buffers begin at any page, longer ones at a multiple of sharedLarge.
func unitFor(n int) int {
	switch {
	case n >= segment.LargePage:
		return segment.LargePage
	case n >= sharedLarge:
		return sharedLarge
	default:
		return os.Getpagesize()
	}
}

// offset returns where in r an address is, and whether it is there.
func (r *region) offset(address unsafe.Pointer) (int, bool) {
	at := uintptr(address) - uintptr(unsafe.Pointer(unsafe.SliceData(r.mem)))
	return int(at), at < uintptr(len(r.mem))
}

// firstFit finds the first n bytes of r that are not in use.
func (r *region) firstFit(n int) (from int, ok bool) {
	for _, e := range r.used {
		if e.from-from >= n {
			break
		}
		from = roundUp(e.to, r.unit)
	}
	return from, len(r.mem)-from >= n
}

// alloc allocates n bytes at from, which are not in use, with memory behind them.
func (r *region) alloc(from, n int) ([]byte, error) {
	i, _ := r.index(from)
	r.used = slices.Insert(r.used, i, extent{from, from + n})
	segment.PopulateLarge(r.mem[from : from+n/segment.LargePage*segment.LargePage])
	if err := segment.Populate(r.mem[from:min(roundUp(from+n, os.Getpagesize()), len(r.mem))]); err != nil {
		r.free(i)
		return nil, err
	}
	return r.mem[from : from+n : from+n], nil
}

// index returns the index of the extent that begins at from, or the index that such an extent would have.
func (r *region) index(from int) (i int, found bool) {
	return slices.BinarySearchFunc(r.used, from, func(e extent, from int) int { return cmp.Compare(e.from, from) })
}

// free removes extent i and returns its memory to the kernel.
func (r *region) free(i int) {
	from, end := r.used[i].from, min(roundUp(r.used[i].to, r.unit), len(r.mem))
	r.used = slices.Delete(r.used, i, i+1)
	if err := r.segment.Punch(from, end-from); err != nil {
		clear(r.mem[from:end])
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
