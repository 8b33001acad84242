//go:build schedule

package cpu

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/testing/schedule"
)

// With the build tag schedule, memory of a machine of package schedule is read and written through it: in orders that a test
// chooses. All other memory is as ever.

var machine *schedule.Machine

// Simulate lets m have its memory from now on; nil: nothing is simulated. No thread of m runs meanwhile.
func Simulate(m *schedule.Machine) { machine = m }

// Running is the machine of which the caller is a thread, or nil.
func Running() *schedule.Machine {
	if machine != nil && machine.Running() != nil {
		return machine
	}
	return nil
}

// Simulated is the machine that there is, or nil.
func Simulated() *schedule.Machine { return machine }

// simulated is where in the machine's memory p is, if it is.
func simulated(p unsafe.Pointer) (at int, ok bool) {
	if machine == nil {
		return 0, false
	}
	return machine.At(p)
}

func load[T uint32 | uint64](p *T, a schedule.Access, real func(*T) T) T {
	at, ok := simulated(unsafe.Pointer(p))
	if !ok {
		return real(p)
	}
	var b [8]byte
	machine.Load(b[:unsafe.Sizeof(*p)], at, a)
	return *(*T)(unsafe.Pointer(&b))
}

func store[T uint32 | uint64](p *T, v T, a schedule.Access, real func(*T, T)) {
	if at, ok := simulated(unsafe.Pointer(p)); ok {
		machine.Store(at, unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), a)
		return
	}
	real(p, v)
}

func plain[T uint32 | uint64](p *T) T       { return *p }
func setPlain[T uint32 | uint64](p *T, v T) { *p = v }

// Load is atomic.LoadUint64.
func Load(p *uint64) uint64 { return load(p, schedule.LoadAcquire, atomic.LoadUint64) }

// Load32 is atomic.LoadUint32.
func Load32(p *uint32) uint32 { return load(p, schedule.LoadAcquire, atomic.LoadUint32) }

// LoadPlain is *p, which nobody else writes meanwhile.
func LoadPlain(p *uint64) uint64 { return load(p, schedule.LoadPlain, plain[uint64]) }

// Store is atomic.StoreUint64.
func Store(p *uint64, v uint64) { store(p, v, schedule.StoreFull, atomic.StoreUint64) }

// Store32 is atomic.StoreUint32.
func Store32(p *uint32, v uint32) { store(p, v, schedule.StoreFull, atomic.StoreUint32) }

// StorePlain sets *p to v, in no order.
func StorePlain(p *uint64, v uint64) { store(p, v, schedule.StorePlain, setPlain[uint64]) }

// StoreRelease sets *p to v after everything written before it, as seen by other processors.
func StoreRelease(p *uint64, v uint64) { store(p, v, schedule.StoreRelease, atomic.StoreUint64) }

// Fence is atomic_thread_fence(memory_order_acq_rel) of C.
func Fence() {
	if machine != nil {
		machine.Fence(schedule.FenceThread)
	}
}

// Add32 is atomic.AddUint32.
func Add32(p *uint32, delta uint32) uint32 {
	if at, ok := simulated(unsafe.Pointer(p)); ok {
		return machine.Update(at, func(v uint32) uint32 { return v + delta }) + delta
	}
	return atomic.AddUint32(p, delta)
}

// Swap32 is atomic.SwapUint32.
func Swap32(p *uint32, v uint32) uint32 {
	if at, ok := simulated(unsafe.Pointer(p)); ok {
		return machine.Update(at, func(uint32) uint32 { return v })
	}
	return atomic.SwapUint32(p, v)
}

// mostLooks is how often a simulated thread looks: what it may miss by looking less often it may miss in any case.
const mostLooks = 2

func looks(p *uint64, tries int) int {
	if _, ok := simulated(unsafe.Pointer(p)); ok {
		tries = min(tries, mostLooks)
	}
	return max(tries, 1)
}

// looked says that a thread has looked at p in vain.
func looked(p *uint64) {
	if _, ok := simulated(unsafe.Pointer(p)); ok {
		machine.Idle()
	}
}

// move is copy, of equal lengths, with loads and stores of that kind.
func move(dst, src []byte, a schedule.Access) {
	if len(src) == 0 {
		return
	}
	from, loads := simulated(unsafe.Pointer(unsafe.SliceData(src)))
	if loads {
		b := make([]byte, len(src))
		machine.Load(b, from, schedule.LoadPlain)
		src = b
	}
	if to, ok := simulated(unsafe.Pointer(unsafe.SliceData(dst))); ok {
		machine.Store(to, src, a)
		return
	}
	copy(dst, src)
}

// Read is src, as this thread sees it.
func Read(src []byte) []byte {
	b := make([]byte, len(src))
	move(b, src, schedule.StorePlain)
	return b
}

// CopyPlain is copy.
func CopyPlain(dst, src []byte) {
	n := min(len(dst), len(src))
	move(dst[:n], src[:n], schedule.StorePlain)
}

// Copy is copy, of equal lengths.
func Copy(dst, src []byte) { move(dst, src, schedule.StoreString) }

// CopyNonTemporal is copy, of equal lengths, past the caches.
func CopyNonTemporal(dst, src []byte) {
	move(dst, src, schedule.StorePast)
	if _, ok := simulated(unsafe.Pointer(unsafe.SliceData(dst))); ok {
		machine.Fence(schedule.StoreFence)
	}
}

// Claim writes what it has read, as it does on amd64.
func Claim(mem []byte) {
	const line = 64
	at, ok := simulated(unsafe.Pointer(unsafe.SliceData(mem)))
	if !ok || machine.Model != schedule.TSO {
		return
	}
	for i := -at & (line - 1); i+line <= len(mem); i += line {
		word := (*uint64)(unsafe.Pointer(&mem[i]))
		StorePlain(word, LoadPlain(word))
	}
}

// ClaimCopied is Claim.
func ClaimCopied(mem []byte) { Claim(mem) }

// ClaimAhead does nothing.
func ClaimAhead([]byte) {}

// ticks is the machine's time in simulated threads, which is the same in every run.
func ticks() uint64 {
	if machine != nil && machine.Running() != nil {
		return uint64(machine.Now())
	}
	return uint64(time.Since(since))
}
