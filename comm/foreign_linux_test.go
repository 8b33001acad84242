package comm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// Buffers need not be memory of Go's. With WithBufferCheck, calls refuse those that are none, or that they cannot write
// to where they would, and the group goes on.
func TestForeignBuffers(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			const n = 5000
			foreign := func(protection int) []int64 {
				mem, err := unix.Mmap(-1, 0, 8*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
				if err != nil {
					t.Error(err)
				}
				t.Cleanup(func() { _ = unix.Munmap(mem) })
				v := reduce.View[int64](mem)
				for i := range v {
					v[i] = int64(i)
				}
				if err := unix.Mprotect(mem, protection); err != nil {
					t.Error(err)
				}
				return v
			}
			g.world.CheckBuffers = true
			root := g.Rank() == 0
			out, in := foreign(unix.PROT_READ|unix.PROT_WRITE), foreign(unix.PROT_READ)
			at := func(here bool) []int64 { // in, where a call only reads, and out elsewhere
				if here {
					return in
				}
				return out
			}
			parts := [][]int64{in[:n/2], in[n/2:]}
			err := errors.Join(
				AllReduceTo(ctx, g, out, in, Sum), Reduce(ctx, g, at(!root), Sum, 0), Broadcast(ctx, g, at(root), 0),
				AllGather(ctx, g, out, in[:n/2]), Gather(ctx, g, at(!root), in[:n/2], 0), Scatter(ctx, g, out[:n/2], in, 0),
				AllToAll(ctx, g, out, in), ScatterV(ctx, g, out[:n/2], parts, 0),
				IScanTo(g, out, in, Sum).Wait(ctx), ExScan(ctx, g, at(root), Sum), ExScanTo(ctx, g, out, in, Sum), Send(ctx, g, in, g.Rank()))
			if _, received := Recv(ctx, g, out, g.Rank()); errors.Join(err, received) != nil || out[n-1] != n-1 {
				return fmt.Errorf("got %d: %w, %w", out[n-1], err, received)
			}
			none := foreign(unix.PROT_NONE)
			_, recv := Recv(ctx, g, in, 1)
			for want, err := range map[string]error{
				"Broadcast: ":              Broadcast(ctx, g, none, 0),
				"AllReduce: out ":          AllReduce(ctx, g, in, Sum),
				"Scan: in ":                IScanTo(g, out, none, Sum).Wait(ctx),
				"AllGather: in ":           AllGather(ctx, g, out, none[:n/2]),
				"AllGatherV: out ":         AllGatherV(ctx, g, parts, out[:n/2]),
				"ReduceScatterV: in ":      ReduceScatterV(ctx, g, out[:n/2], [][]int64{out[:n/2], none[n/2:]}, Sum),
				"AllReduceCoalesced: out ": AllReduceCoalesced(ctx, g, [][]int64{out, in}, Sum),
				"Send: buf ":               Send(ctx, g, none, 0),
				"Recv: buf ":               recv,
			} {
				if _, ok := errors.AsType[*ArgumentError](err); !ok || !strings.HasPrefix(err.Error(), "comm: "+want) {
					return fmt.Errorf("want %s, got %w", want, err)
				}
			}
			return Barrier(ctx, g)
		})
	})
}
