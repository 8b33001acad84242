package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
)

// A call that is wrong in itself on one rank leaves the others waiting, which are told so within seconds; and if the
// rank makes the right call after all, nothing is lost.
func TestARefusedCallIsToldToWhoWaits(t *testing.T) {
	for name, c := range map[string]struct {
		right, wrong func(ctx context.Context, g *Group) error
		op, reason   string
	}{
		"an operation without meaning": {
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, []float32{1}, Sum) },
			func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, []float32{1}, BitAnd) },
			"AllReduce #1", "comm: AllReduce: BitAnd has no meaning for float32",
		},
		"too little to scatter": {
			func(ctx context.Context, g *Group) error {
				return Scatter(ctx, g, make([]float32, 2), make([]float32, 6), 1)
			},
			func(ctx context.Context, g *Group) error {
				return Scatter(ctx, g, make([]float32, 2), make([]float32, 4), 1)
			},
			"Scatter #1", "comm: Scatter: len(in) is 4: want Size × len(out) = 3 × 2",
		},
		"ranks that there are not": {
			func(ctx context.Context, g *Group) error { _, err := NewGroup(ctx, g, []int{0, 1}); return err },
			func(ctx context.Context, g *Group) error { _, err := NewGroup(ctx, g, []int{0, 3}); return err },
			"NewGroup #1", "comm: NewGroup: no rank 3 in a group of 3",
		},
		"a mesh of another size": {
			func(ctx context.Context, g *Group) error { _, err := NewMesh(ctx, g, []int{3}, "dp"); return err },
			func(ctx context.Context, g *Group) error { _, err := NewMesh(ctx, g, []int{4}, "dp"); return err },
			"NewMesh #1", "comm: NewMesh: shape [4]: want numbers whose product is Size = 3",
		},
		"a rank that there is not": {
			func(ctx context.Context, g *Group) error {
				if g.Rank() == 1 {
					return errors.Join(Send(ctx, g, []int{1}, 0), Send(ctx, g, []int{1}, 2))
				}
				_, err := Recv(ctx, g, []int{0}, 1)
				return err
			},
			func(ctx context.Context, g *Group) error { return Send(ctx, g, []int{1}, 3) },
			"Recv #1", "comm: Send: no rank 3 in a group of 3",
		},
		"a context that has ended": {
			Barrier,
			func(ctx context.Context, g *Group) error {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return Barrier(ctx, g)
			},
			"Barrier #1", "comm: Barrier: context canceled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, corrected := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					log := &lines{}
					w := &testWorld{t: t}
					for r, tr := range transports["mem"](t, 3) {
						info := make([]core.Peer, 3)
						for r := range info {
							info[r] = core.Peer{Host: "here", PID: os.Getpid()}
						}
						g, err := memberOf(r, info, tr, log)
						if err != nil {
							t.Fatal(err)
						}
						w.groups = append(w.groups, g)
					}
					defer w.close()
					for r, err := range w.results(func(ctx context.Context, g *Group) error {
						if g.Rank() != 1 {
							return c.right(ctx, g)
						}
						if err := c.wrong(ctx, g); err == nil || err.Error() != c.reason {
							return fmt.Errorf("got %w, want %s", err, c.reason)
						}
						if !corrected {
							return nil
						}
						time.Sleep(15 * time.Second)
						told := log.with("rank=1")
						if len(told) == 0 || !strings.Contains(told[0], c.op) || !strings.Contains(told[0], "its last call was refused ("+c.reason+") 1") {
							t.Errorf("after 15 s the log has %q", told)
						}
						return c.right(ctx, g)
					}) {
						var peer *PeerError
						switch {
						case corrected && err != nil:
							t.Errorf("rank %d got %v once rank 1 had corrected its call", r, err)
						case corrected || r == 1:
						case !errors.As(err, &peer) || peer.Rank != 1 || !strings.Contains(err.Error(), "refused ("+c.reason+") 1m0s ago"):
							t.Errorf("rank %d got %v, want that it names rank 1 and says %s", r, err, c.reason)
						}
					}
				})
			}
		})
	}
}
