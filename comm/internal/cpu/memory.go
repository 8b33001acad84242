//go:build !schedule

package cpu

import "sync/atomic"

// Memory that processes share is read and written by the functions of this package, so that tests can choose the order of accesses
// (cpu_schedule.go). In other builds these functions cost nothing.

// Load is atomic.LoadUint64.
func Load(p *uint64) uint64 { return atomic.LoadUint64(p) }

// Load32 is atomic.LoadUint32.
func Load32(p *uint32) uint32 { return atomic.LoadUint32(p) }

// Store is atomic.StoreUint64.
func Store(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// Store32 is atomic.StoreUint32.
func Store32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

// Add32 is atomic.AddUint32.
func Add32(p *uint32, delta uint32) uint32 { return atomic.AddUint32(p, delta) }

// Swap32 is atomic.SwapUint32.
func Swap32(p *uint32, v uint32) uint32 { return atomic.SwapUint32(p, v) }

// LoadPlain returns *p, which no other processor writes meanwhile.
func LoadPlain(p *uint64) uint64 { return *p }

// StorePlain sets *p to v, in no order with other accesses.
func StorePlain(p *uint64, v uint64) { *p = v }

// CopyPlain is copy.
func CopyPlain(dst, src []byte) { copy(dst, src) }
