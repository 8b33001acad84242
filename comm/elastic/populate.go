package elastic

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// populate makes the kernel allocate the memory of some buffers, piece by piece, and changes nothing in them. It does so beside the program: a new
// process has begun before its world has formed, and then receives a commit in half the time. end stops that, and waits until it has stopped.
func populate(buffers [][]byte) (end func()) {
	var (
		stop atomic.Bool
		work sync.WaitGroup
	)
	work.Go(func() { populateUntil(&stop, buffers) })
	return func() {
		stop.Store(true)
		work.Wait()
	}
}

// populateUntil populates buffers, until stop is set.
func populateUntil(stop *atomic.Bool, buffers [][]byte) {
	for _, b := range buffers {
		for from := 0; from < len(b); from += populateStep {
			if stop.Load() || segment.Populate(wholePages(b[from:min(from+populateStep, len(b))])) != nil {
				return // whoever writes there first allocates the rest
			}
		}
	}
}

// populateStep is how many bytes are populated at once. Meanwhile the process can map no other memory.
const populateStep = 1 << 20

// wholePages is the part of b that consists of whole pages.
func wholePages(b []byte) []byte {
	before := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (segment.PageSize - 1)
	b = b[min(before, len(b)):]
	return b[:len(b)/segment.PageSize*segment.PageSize]
}
