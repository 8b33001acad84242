package comm

import (
	"context"
	"slices"
)

// AllReduceCoalesced is an AllReduce of many buffers at once, which for short ones is much faster. Every rank gives as many,
// of the same lengths in the same order, and at least one.
func AllReduceCoalesced[T Element](ctx context.Context, g *Group, bufs [][]T, op Op) error {
	return allReduceCoalesced(g, bufs, op).run(ctx)
}

// IAllReduceCoalesced starts an AllReduceCoalesced and returns at once.
func IAllReduceCoalesced[T Element](g *Group, bufs [][]T, op Op) *Work {
	return allReduceCoalesced(g, bufs, op).start()
}

func allReduceCoalesced[T Element](g *Group, bufs [][]T, op Op) *collective {
	lengths, total := lengthsOf(bufs), 0
	for _, n := range lengths {
		total += n
	}
	r := newReducing[T](g, callAllReduceCoalesced, op, total)
	r.want(len(bufs) > 0, "no buffers given: want at least one")
	for i, n := range lengths {
		r.want(r.red.width < 2 || n%r.red.width == 0, "%v: len(bufs[%d]) is %d: want a multiple of %d", op, i, n, r.red.width)
	}
	r.call.Detail ^= uint32(checksum(lengths))
	r.begin = func() task {
		if len(bufs) == 1 {
			return r.everywhere(bufs[0])
		}
		flat := slices.Concat(bufs...)
		t := r.everywhere(flat)
		result := t.end
		t.end = func() {
			result()
			for _, buf := range bufs {
				flat = flat[copy(buf, flat):]
			}
		}
		return t
	}
	return r.collective
}
