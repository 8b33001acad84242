//go:build !amd64

package shm

import "sync/atomic"

// storeRelease sets *p to v after everything written before it, as seen by other processors.
func storeRelease(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// await looks at *p until it is at least least, or has been looked at tries times, and returns it.
func await(p *uint64, least uint64, tries int) uint64 {
	for {
		v := atomic.LoadUint64(p)
		if tries--; v >= least || tries <= 0 {
			return v
		}
	}
}
