package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/env/testing/testkit"
)

// Every blocking call but those of objects, MonitoredBarrier and Probe allocates nothing once there have been some,
// whatever it combines, by whatever plan, of whatever lengths where ranks may differ in them, and over whatever
// transport; in memory, unless ranks have to sleep.
func TestBlockingCallsAllocateNothing(t *testing.T) {
	testkit.WithoutRace(t)                          // which lets pools forget
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that ranks take turns
	const rounds, tries = 20, 30
	for _, c := range []struct {
		transport string
		ranks     int
		long      int
		allocated bool // buffers are in memory of Alloc
	}{
		{"mem", 3, 20_000, false}, {"chunks", 3, 300, false}, {"tcp", 2, 20_000, false}, {"tcp", 4, 20_000, false},
		{"bundles", 3, 20_000, false}, {"shm", 2, 20_000, false}, {"shm", 3, 20_000, false}, {"shm", 3, 20_000, true},
		{"halves", 4, 20_000, false}, {"scattered", 5, 20_000, false},
	} {
		w := worldOver(t, c.transport, c.ranks)
		for _, n := range []int{6, c.long} {
			for name, call := range blockingCalls(n) {
				var before, after runtime.MemStats
				least := uint64(math.MaxUint64) // of the tries: on a busy machine ranks sleep, and that allocates
				var nothing atomic.Bool
				w.run(func(ctx context.Context, g *Group) error {
					b := newCallBuffers(g, n, c.allocated)
					var err error
					repeat := func() {
						if err == nil {
							err = errors.Join(call(ctx, g, b), Barrier(ctx, g)) // so that nobody gets ahead and what it sends piles up
						}
					}
					for range rounds {
						repeat()
					}
					for range tries {
						if g.Rank() == 0 {
							runtime.ReadMemStats(&before)
						}
						for range rounds {
							repeat()
						}
						if g.Rank() == 0 {
							runtime.ReadMemStats(&after)
							least = min(least, after.Mallocs-before.Mallocs)
							nothing.Store(least == 0)
						}
						if repeat(); nothing.Load() { // all ranks see the same
							break
						}
					}
					return err
				})
				if least > 0 {
					t.Errorf("%s of %d elements by %d ranks over %s: %d allocations in %d calls", name, n, c.ranks, c.transport, least, rounds)
				}
			}
		}
		w.close()
	}
}

// TestRankAheadAllocatesOnce: what comes before its receive has memory of its own, which is used again. So calls of a
// rank that is ahead allocate while it gets further ahead than ever before, and no more after that.
func TestRankAheadAllocatesOnce(t *testing.T) {
	testkit.WithoutRace(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // pools forget when garbage is collected
	const rounds, calls, most = 10, 500, 4 * 500     // allocations: two for a message, and some of ranks that sleep
	w := worldOver(t, "tcp", 2)
	defer w.close()
	for name, call := range map[string]blockingCall{
		"Broadcast": func(ctx context.Context, g *Group, b *callBuffers) error { return Broadcast(ctx, g, b.in[:6], 0) },
		"Reduce":    func(ctx context.Context, g *Group, b *callBuffers) error { return Reduce(ctx, g, b.in[:6], Sum, 1) },
		"Scatter": func(ctx context.Context, g *Group, b *callBuffers) error {
			return Scatter(ctx, g, b.out[:6], b.in[:12], 0)
		},
		"Send": func(ctx context.Context, g *Group, b *callBuffers) error {
			if g.Rank() == 0 {
				return Send(ctx, g, b.in[:6], 1)
			}
			_, err := Recv(ctx, g, b.out[:6], 0)
			return err
		},
	} {
		ahead := make(chan struct{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.run(func(ctx context.Context, g *Group) error {
			b := newCallBuffers(g, 6, false)
			for range rounds {
				if g.Rank() == 1 {
					<-ahead
				}
				for range calls {
					if err := call(ctx, g, b); err != nil {
						return err
					}
				}
				if g.Rank() == 0 {
					ahead <- struct{}{}
				}
				if err := Barrier(ctx, g); err != nil {
					return err
				}
			}
			return nil
		})
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > most {
			t.Errorf("%s: %d allocations in %d calls", name, n, rounds*calls)
		}
	}
}

// A blockingCall is a call of a rank with its buffers.
type blockingCall func(ctx context.Context, g *Group, b *callBuffers) error

// callBuffers are what a rank calls with.
type callBuffers struct {
	in, out []float32   // a block for every rank
	few     [][]float32 // of in
	cut     [2]*cutUp
}

// A cutUp is in and out of a rank, cut into parts.
type cutUp struct {
	in, out      [][]float32 // of every rank one element more
	mineOut      [][]float32 // of every rank as much as this one's part of in
	counts, mine []int       // how long parts are; for every rank as much as this one's
}

// newCallBuffers returns buffers of about n elements, which are in memory of Alloc if isAllocated.
func newCallBuffers(g *Group, n int, isAllocated bool) *callBuffers {
	size := g.Size()
	buffer := func() []float32 {
		if isAllocated {
			return allocated[float32](g, size*(n+size))
		}
		return make([]float32, size*(n+size))
	}
	b := &callBuffers{in: buffer(), out: buffer()}
	for i := range b.cut {
		l, lo := new(cutUp), 0
		for r := range size {
			k := n/2 - i + r
			l.in, l.out = append(l.in, b.in[lo:lo+k]), append(l.out, b.out[lo:lo+k])
			l.counts, l.mine = append(l.counts, k), append(l.mine, n/2-i+g.Rank())
			lo += k
		}
		for r, k := range l.mine {
			l.mineOut = append(l.mineOut, b.out[r*k:(r+1)*k])
		}
		b.cut[i] = l
	}
	b.few = [][]float32{b.in[:n/2], b.in[n/2 : n]}
	return b
}

// others are parts of other lengths than those of the last call.
func (b *callBuffers) others() *cutUp {
	b.cut[0], b.cut[1] = b.cut[1], b.cut[0]
	return b.cut[0]
}

// blockingCalls are the calls that allocate nothing, of n elements or so.
func blockingCalls(n int) map[string]blockingCall {
	calls := map[string]blockingCall{
		"Barrier":   func(ctx context.Context, g *Group, _ *callBuffers) error { return Barrier(ctx, g) },
		"Broadcast": func(ctx context.Context, g *Group, b *callBuffers) error { return Broadcast(ctx, g, b.in[:n], 1) },
		"AllGather": func(ctx context.Context, g *Group, b *callBuffers) error {
			return AllGather(ctx, g, b.out[:n*g.Size()], b.in[:n])
		},
		"AllGatherV": func(ctx context.Context, g *Group, b *callBuffers) error {
			l := b.others()
			return AllGatherV(ctx, g, l.out, l.in[g.Rank()])
		},
		"Gather": func(ctx context.Context, g *Group, b *callBuffers) error {
			return Gather(ctx, g, b.out[:n*g.Size()], b.in[:n], 1)
		},
		"GatherV": func(ctx context.Context, g *Group, b *callBuffers) error {
			l := b.others()
			return GatherV(ctx, g, l.out, l.in[g.Rank()], 1)
		},
		"Scatter": func(ctx context.Context, g *Group, b *callBuffers) error {
			return Scatter(ctx, g, b.out[:n], b.in[:n*g.Size()], 1)
		},
		"ScatterV": func(ctx context.Context, g *Group, b *callBuffers) error {
			l := b.others()
			return ScatterV(ctx, g, l.out[g.Rank()], l.in, 1)
		},
		"AllToAll": func(ctx context.Context, g *Group, b *callBuffers) error {
			return AllToAll(ctx, g, b.out[:n*g.Size()], b.in[:n*g.Size()])
		},
		"AllToAllV": func(ctx context.Context, g *Group, b *callBuffers) error {
			l, size := b.others(), g.Size()
			sent, received := size*l.counts[0]+size*(size-1)/2, size*l.mine[0]
			return AllToAllV(ctx, g, b.out[:received], l.mine, b.in[:sent], l.counts)
		},
		"AllToAllW": func(ctx context.Context, g *Group, b *callBuffers) error {
			l := b.others()
			return AllToAllW(ctx, g, l.mineOut, l.in)
		},
		"AllReduceCoalesced": func(ctx context.Context, g *Group, b *callBuffers) error {
			return AllReduceCoalesced(ctx, g, b.few, Max)
		},
		"ReduceScatterV": func(ctx context.Context, g *Group, b *callBuffers) error {
			l := b.others()
			return ReduceScatterV(ctx, g, l.out[g.Rank()], l.in, Max)
		},
		"AllReduceTo": func(ctx context.Context, g *Group, b *callBuffers) error {
			return AllReduceTo(ctx, g, b.out[:n], b.in[:n], Max)
		},
		"ReduceTo": func(ctx context.Context, g *Group, b *callBuffers) error {
			return ReduceTo(ctx, g, b.out[:n], b.in[:n], Max, 1)
		},
		"ScanTo": func(ctx context.Context, g *Group, b *callBuffers) error {
			return ScanTo(ctx, g, b.out[:n], b.in[:n], Max)
		},
		"ExScanTo": func(ctx context.Context, g *Group, b *callBuffers) error {
			return ExScanTo(ctx, g, b.out[:n], b.in[:n], Max)
		},
		"Scan":   func(ctx context.Context, g *Group, b *callBuffers) error { return Scan(ctx, g, b.in[:n], Max) },
		"ExScan": func(ctx context.Context, g *Group, b *callBuffers) error { return ExScan(ctx, g, b.in[:n], Max) },
		"Send and Recv": func(ctx context.Context, g *Group, b *callBuffers) error {
			next, last := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
			if g.Rank() == 0 {
				if err := Send(ctx, g, b.in[:n], next); err != nil {
					return err
				}
			}
			if _, err := Recv(ctx, g, b.out[:n], last); err != nil || g.Rank() == 0 {
				return err
			}
			return Send(ctx, g, b.out[:n], next)
		},
	}
	for _, op := range []Op{Max, Avg, MinLoc, PreMulSum(0.5), NewOp("left", false, func(_, _ []float32) {})} {
		addReductions[float32](calls, n, op)
	}
	for _, op := range []Op{Sum, Avg, PreMulSum(0.5)} {
		addReductions[BFloat16](calls, n, op)
	}
	addReductions[int32](calls, n, LogicalOr)
	return calls
}

// addReductions adds reductions of n elements of type T by op to calls.
func addReductions[T Element](calls map[string]blockingCall, n int, op Op) {
	of := func(buf []float32, n int) []T { return reduce.View[T](reduce.Bytes(buf))[:n] }
	for name, call := range map[string]blockingCall{
		"AllReduce": func(ctx context.Context, g *Group, b *callBuffers) error { return AllReduce(ctx, g, of(b.in, n), op) },
		"Reduce":    func(ctx context.Context, g *Group, b *callBuffers) error { return Reduce(ctx, g, of(b.in, n), op, 1) },
		"ReduceScatter": func(ctx context.Context, g *Group, b *callBuffers) error {
			return ReduceScatter(ctx, g, of(b.out, n), of(b.in, n*g.Size()), op)
		},
	} {
		calls[fmt.Sprintf("%s(%v, %v)", name, typeOf[T](), op)] = call
	}
}
