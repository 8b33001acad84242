package testkit

import (
	"runtime/metrics"
	"testing"
)

// slack allows for what other goroutines allocate meanwhile, and for what the runtime counts late.
const slack = 1 << 20

// AllocatesAtMost calls f, which must not allocate more than limit bytes in all, even if most of it is already garbage: input from outside
// must not determine how much memory is used.
func AllocatesAtMost(t testing.TB, limit int, f func()) {
	t.Helper()
	const tries = 3 // as it may be others that allocate
	var took uint64
	for range tries {
		before := allocated()
		f()
		if took = allocated() - before; took <= uint64(limit)+slack {
			return
		}
	}
	t.Errorf("%d bytes were allocated: the limit is %d", took, limit)
}

// allocated returns how many bytes this process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
