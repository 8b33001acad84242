package comm

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// keptBuffers makes buffers, and counts those that the garbage collector has not taken yet.
type keptBuffers struct{ kept atomic.Int64 }

func (k *keptBuffers) make(n int) []int32 {
	buf := make([]int32, n)
	k.kept.Add(1)
	runtime.AddCleanup(&buf[0], func(k *keptBuffers) { k.kept.Add(-1) }, k)
	return buf
}

// usesOfBuffers are calls on several buffers of about n elements, which nobody else holds.
var usesOfBuffers = map[string]func(ctx context.Context, g *Group, buf func(n int) []int32, n int) error{
	"AllReduceCoalesced": func(ctx context.Context, g *Group, buf func(int) []int32, n int) error {
		return AllReduceCoalesced(ctx, g, [][]int32{buf(n), buf(n), buf(3)}, Sum)
	},
	"ReduceScatter": func(ctx context.Context, g *Group, buf func(int) []int32, n int) error {
		return ReduceScatter(ctx, g, buf(n), buf(n*g.Size()), Sum)
	},
	"AllGather": func(ctx context.Context, g *Group, buf func(int) []int32, n int) error {
		return AllGather(ctx, g, buf(n*g.Size()), buf(n))
	},
	"GatherV": func(ctx context.Context, g *Group, buf func(int) []int32, n int) error {
		parts := make([][]int32, g.Size()) // which do not matter on ranks other than the root
		for r := range parts {
			parts[r] = buf(n)
		}
		return GatherV(ctx, g, parts, buf(n), 0)
	},
	"Scatter": func(ctx context.Context, g *Group, buf func(int) []int32, n int) error {
		return Scatter(ctx, g, buf(n), buf(n*g.Size()), 0)
	},
	"IAllToAll": func(ctx context.Context, g *Group, buf func(int) []int32, n int) error {
		return IAllToAll(g, buf(n*g.Size()), buf(n*g.Size())).Wait(ctx)
	},
	"refused": func(ctx context.Context, g *Group, buf func(int) []int32, n int) error {
		if err := AllGatherV(ctx, g, [][]int32{buf(n), buf(n), buf(n), buf(n), buf(n)}, buf(n)); ExitCode(err) != 2 {
			return fmt.Errorf("wrong parts: got %w", err)
		}
		return Barrier(ctx, g)
	},
}

// A group keeps no buffers of a call that is over. Who has moved bytes last may know of one until the next call.
func TestGroupsKeepNoBuffers(t *testing.T) {
	testkit.WithoutRace(t)
	const ranks = 4
	onTransports(t, []string{"mem", "shm", "mixed", "one apart"}, func(t *testing.T, world func(int) *testWorld) {
		for name, use := range usesOfBuffers {
			for _, n := range testkit.UnlessShort([]int{100, 10_000}, []int{10_000}) {
				w := world(ranks)
				var buffers keptBuffers
				w.run(func(ctx context.Context, g *Group) error { return use(ctx, g, buffers.make, n) })
				for end := time.Now().Add(5 * time.Second); buffers.kept.Load() > ranks && time.Now().Before(end); runtime.Gosched() {
					runtime.GC() // the runtime calls cleanups in a goroutine of its own
				}
				if kept := buffers.kept.Load(); kept > ranks {
					t.Errorf("%s of %d elements: %d ranks hold %d buffers", name, n, ranks, kept)
				}
				w.close()
			}
		}
	})
}
