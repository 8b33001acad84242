package comm

import (
	"context"
	"fmt"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// The benchmarks run two ranks as goroutines of one process, over loopback TCP. They print figures and judge none.

func benchmark(b *testing.B, elements []int, operation func(ctx context.Context, g *Group, buf []float32) error) {
	for _, n := range elements {
		b.Run(fmt.Sprintf("%dB", 4*n), func(b *testing.B) {
			w := newTestWorld(b, transports["tcp"](b, 2))
			defer w.close()
			b.SetBytes(int64(4 * n))
			b.ReportAllocs()
			b.ResetTimer()
			w.run(func(ctx context.Context, g *Group) error {
				buf := make([]float32, n)
				for range b.N {
					if err := operation(ctx, g, buf); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

func BenchmarkAllReduce(b *testing.B) {
	benchmark(b, []int{2, 256, 16 << 10, 256 << 10, 4 << 20}, func(ctx context.Context, g *Group, buf []float32) error {
		return AllReduce(ctx, g, buf, Sum)
	})
}

func BenchmarkPingPong(b *testing.B) {
	benchmark(b, []int{2, 256, 16 << 10, 256 << 10, 4 << 20}, pingPong[float32])
}

// pingPong sends buf from rank 0 to rank 1 and back.
func pingPong[T Element](ctx context.Context, g *Group, buf []T) error {
	peer := 1 - g.Rank()
	if g.Rank() == 0 {
		if err := Send(ctx, g, buf, peer); err != nil {
			return err
		}
	}
	if _, err := Recv(ctx, g, buf, peer); err != nil {
		return err
	}
	if g.Rank() == 1 {
		return Send(ctx, g, buf, peer)
	}
	return nil
}

func BenchmarkBarrier(b *testing.B) {
	benchmark(b, []int{0}, func(ctx context.Context, g *Group, _ []float32) error { return Barrier(ctx, g) })
}

// BenchmarkInit joins, all-reduces a number and leaves, as many ranks of one process at once.
func BenchmarkInit(b *testing.B) {
	for _, size := range []int{2, 16, 64, 256} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ranks := make([]int, size)
			for r := range ranks {
				ranks[r] = r
			}
			way := WithInitMethod("tcp://" + testkit.ReservedAddr(b))
			for b.Loop() {
				groups, errs := initAll(b, ranks, size, way)
				wantWorld(b, groups, errs)
			}
		})
	}
}
