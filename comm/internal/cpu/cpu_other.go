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

// looks returns how often to poll p.
func looks(_ *uint64, tries int) int { return max(tries, 1) }

func looked(*uint64) {}

// Copy is copy, of equal lengths.
func Copy(dst, src []byte) { copy(dst, src) }

// CopyNonTemporal is copy, of equal lengths.
func CopyNonTemporal(dst, src []byte) { copy(dst, src) }

// Claim does nothing here: it only makes other processors faster.
func Claim([]byte) {}

// ClaimCopied does nothing here.
func ClaimCopied([]byte) {}

// ClaimAhead does nothing here.
func ClaimAhead([]byte) {}

func ticks() uint64 { return uint64(time.Since(since)) }
