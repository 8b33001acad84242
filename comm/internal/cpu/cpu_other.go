//go:build !amd64 && !schedule

package cpu

import (
	"sync/atomic"
	"time"
)

// StoreRelease sets *p to v. Other processors see that after everything written before.
func StoreRelease(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// Fence is atomic_thread_fence(memory_order_acq_rel) of C: loads before it come before, and stores after it come after, all other
// accesses. An atomic store waits for the loads before it, and an atomic load for that store.
func Fence() {
	var word uint64
	atomic.StoreUint64(&word, 1)
	_ = atomic.LoadUint64(&word)
}

// Await polls *p until it has [Reached] least, but at most tries times, and returns it.
func Await(p *uint64, least uint64, tries int) uint64 {
	for {
		v := atomic.LoadUint64(p)
		if tries--; Reached(v, least) || tries <= 0 {
			return v
		}
	}
}

// AwaitEqual polls *p until it is want, but at most tries times, and reports whether it is.
func AwaitEqual(p *uint64, want uint64, tries int, _ *byte) bool {
	for range max(tries, 1) {
		if atomic.LoadUint64(p) == want {
			return true
		}
	}
	return false
}

// Copy is copy, of equal lengths.
func Copy(dst, src []byte) { copy(dst, src) }

// HasNonTemporal reports whether CopyNonTemporal differs from copy.
const HasNonTemporal = false

// CopyNonTemporal is copy, of equal lengths.
func CopyNonTemporal(dst, src []byte) { copy(dst, src) }

// Claim does nothing here: it only makes other processors faster.
func Claim([]byte) {}

// ClaimCopied does nothing here.
func ClaimCopied([]byte) {}

// ClaimAhead does nothing here.
func ClaimAhead([]byte) {}

var begun = time.Now()

func ticks() uint64 { return uint64(time.Since(begun)) }

// Note writes a record: words 1 to 3 of p become a, b and c, word 4 becomes Now, and the last one 0. The first word is 0 meanwhile, and
// becomes key when the rest is written. Other processors see the stores in this order.
func Note(p *[8]uint64, key, a, b, c uint64) {
	for i, w := range [...]uint64{0, a, b, c, ticks()} {
		atomic.StoreUint64(&p[i], w)
	}
	atomic.StoreUint64(&p[7], 0)
	atomic.StoreUint64(&p[0], key)
}

// StoreThree sets p to a, b and c. Other processors see the stores in this order.
func StoreThree(p *[3]uint64, a, b, c uint64) {
	for i, w := range [...]uint64{a, b, c} {
		atomic.StoreUint64(&p[i], w)
	}
}
