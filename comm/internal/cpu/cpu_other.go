//go:build !amd64 && !schedule

package cpu

import (
	"sync/atomic"
	"time"
)

// StoreRelease sets *p to v after everything written before it, as seen by other processors.
func StoreRelease(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// Fence is atomic_thread_fence(memory_order_acq_rel) of C: what is read before it is read before, and what is written after it is
// written after, all else there. An atomic store waits for what is read before it, and an atomic load for that store.
func Fence() {
	var word uint64
	atomic.StoreUint64(&word, 1)
	_ = atomic.LoadUint64(&word)
}

// Await looks at *p until it has [Reached] least, or has been looked at tries times, and returns it.
func Await(p *uint64, least uint64, tries int) uint64 {
	for {
		v := atomic.LoadUint64(p)
		if tries--; Reached(v, least) || tries <= 0 {
			return v
		}
	}
}

// AwaitEqual looks at *p until it is want, or has been looked at tries times, and reports whether it is.
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

// Claim does nothing here: it would make the processor that has written mem faster when it writes there again.
func Claim([]byte) {}

// ClaimCopied does nothing here either.
func ClaimCopied([]byte) {}

// ClaimAhead does nothing here either.
func ClaimAhead([]byte) {}

var begun = time.Now()

func ticks() uint64 { return uint64(time.Since(begun)) }

// Note sets p to 0, a, b, c, Now, whatever it was, and 0 at the end, in this order, and then its first word to key, as seen
// by other processors.
func Note(p *[8]uint64, key, a, b, c uint64) {
	for i, w := range [...]uint64{0, a, b, c, ticks()} {
		atomic.StoreUint64(&p[i], w)
	}
	atomic.StoreUint64(&p[7], 0)
	atomic.StoreUint64(&p[0], key)
}

// StoreThree sets p to a, b and c, in this order, as seen by other processors.
func StoreThree(p *[3]uint64, a, b, c uint64) {
	for i, w := range [...]uint64{a, b, c} {
		atomic.StoreUint64(&p[i], w)
	}
}
