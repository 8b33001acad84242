package shm

import (
	"math"
	"math/rand/v2"
	"os"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/cma"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// Single copy. Other ranks cannot attach memory outside of heaps, which is private to its process. But a system call copies from it (package
// cma), where the system allows that. So a rank can export a private buffer as it exports one in a heap (inplace.go), by its address, and
// others read it at once instead of from slots.
//
// Whether that is faster depends on the processors, and on what the program does with its buffers. Two Intel Xeons took 11 us for an all-gather
// of 256 KiB, and 20 with slots; but if the ranks wrote their buffers in between, they took 30 and 21. So ranks try both (pace.go).

// privateMemory is the segment of an export whose offset is an address in its rank's memory.
const privateMemory = math.MaxUint64

// A process says how others make sure that they read memory of the right process. Another namespace has other numbers of processes. So others
// compare a word in the process's private memory with what it has published.
type process struct {
	pid     uint64 // 0: not published yet
	address uint64 // of the word
	word    uint64
	_       [13]uint64
}

// What a rank publishes about how it reads private memory of others.
const (
	cannotRead   = iota // or it does not know yet
	prefersSlots        // it can
	prefersCalls        // it can, and that makes it faster
)

// singleCopy is the state of a team whose ranks read private memory of each other.
type singleCopy struct {
	word     *uint64 // see process
	probed   bool    // this rank knows whether it can read the private memory of all others
	exported []byte  // by this rank. It is on the Go heap, because this points to it, so it does not move
	readable address // the last buffer of which the kernel has let this process read
	paces    [lengths]pace
}

// An address is where a buffer has been.
type address struct {
	from uintptr
	n    int
}

// preference is what a rank publishes that can read private memory of others.
func preference(p *pace) uint64 {
	if p.second {
		return prefersCalls
	}
	return prefersSlots
}

// lengths are the classes of lengths for which ranks try both ways: shorter than a processor's own cache, about as long, and longer.
const lengths = 3

func lengthOf(n int) int {
	switch {
	case n < 256<<10:
		return 0
	case n < 2<<20:
		return 1
	}
	return 2
}

// introduce publishes this rank's process.
func (t *Team) introduce() {
	cma.Allow()
	word := rand.Uint64()
	t.singleCopy = singleCopy{word: &word}
	p := &t.ranks[t.me].process
	cpu.Store(&p.address, uint64(uintptr(unsafe.Pointer(&word))))
	cpu.Store(&p.word, word)
	cpu.Store(&p.pid, uint64(os.Getpid()))
}

// probe finds out whether this rank can read the memory of all others, once all have published their processes.
func (t *Team) probe() {
	for r, c := range t.ranks {
		if r != t.me && cpu.Load(&c.process.pid) == 0 {
			return
		}
	}
	t.probed = true
	for r, c := range t.ranks {
		if r != t.me && !c.process.isReadable() {
			return
		}
	}
	for length := range lengths {
		cpu.Store(&t.ranks[t.me].prefers[length], preference(&t.paces[length]))
	}
}

// isReadable reports whether this process can read the memory of p.
func (p *process) isReadable() bool {
	var word [8]byte
	err := cma.Read(int(cpu.Load(&p.pid)), word[:], cpu.Load(&p.address))
	return err == nil && *(*uint64)(unsafe.Pointer(&word)) == cpu.Load(&p.word)
}

// usesCalls begins an operation on private buffers, of which each rank takes from others what p says. It reports whether a rank exports its
// own: if that is its way, and all others can read it, and they prefer that or it is to be tried.
func (t *Team) usesCalls(way string, p span) bool {
	if way != "cma" || !t.isInPlace(p) {
		return false
	}
	if !t.probed {
		t.probe()
	}
	length := lengthOf(p.n)
	pace, mine, least := &t.paces[length], &t.ranks[t.me].prefers[length], uint64(prefersCalls)
	switch pace.next(cpu.Now()) {
	case firstWay:
		return false
	case secondWay:
		least = prefersSlots
	}
	if cpu.LoadPlain(mine) != cannotRead {
		cpu.Store(mine, preference(pace))
	}
	for r, c := range t.ranks {
		if r != t.me && cpu.Load(&c.prefers[length]) < least {
			return false
		}
	}
	return true
}

// exportPrivate exports buf for all others to read with system calls, and reports whether it has. It has not if the kernel lets nobody read
// buf, as memory of a device.
func (t *Team) exportPrivate(buf []byte) bool {
	at := address{uintptr(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)}
	if at != t.readable {
		var b [1]byte
		for _, i := range [...]int{0, len(buf) - 1} {
			if cma.Read(os.Getpid(), b[:], uint64(at.from)+uint64(i)) != nil {
				return false
			}
		}
		t.readable = at
	}
	t.exported = buf
	t.export(heap.Handle{Segment: privateMemory, Offset: uint64(at.from)})
	return true
}

// readPrivate waits for r's first step. If r exports private memory, it reads there what p says into dst, and reports that it has.
func (t *Team) readPrivate(dst []byte, r int, p span) (bool, error) {
	t.attached[r].mem = nil
	from, exports, err := t.awaitExport(r)
	if !exports || from.Segment != privateMemory {
		return false, err
	}
	t.attached[r] = attachment{t.op, dst}
	return true, t.copyPrivate(dst, r, from.Offset+uint64(p.at))
}

// copyPrivate fills dst with r's memory at an address. It fails if r has abandoned the operation and has no memory there any more.
func (t *Team) copyPrivate(dst []byte, r int, from uint64) error {
	pid := int(cpu.Load(&t.ranks[r].process.pid))
	for len(dst) > 0 {
		n := min(len(dst), spreadBlock)
		if err := cma.Read(pid, dst[:n], from); err != nil {
			if !t.exports(r) {
				return t.awaitFailure(r)
			}
			return &Unreachable{r, err}
		}
		t.countMoved(n)
		t.Received += uint64(n)
		dst, from = dst[n:], from+uint64(n)
	}
	return nil
}
