package comm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A call that is wrong in itself on one rank leaves the others waiting, which are told so within seconds; and if the rank
// makes the right call after all, nothing is lost.
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
						info := make([]rankInfo, 3)
						for r := range info {
							info[r] = rankInfo{Host: "here", PID: os.Getpid()}
						}
						g, err := newWorld(config{timeout: time.Minute, log: slog.New(slog.NewTextHandler(log, nil))}, r, 1, info, tr, nil)
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

// Calls on the group of others, which is nil, say so.
func TestCallsOnNoGroup(t *testing.T) {
	ctx, none := t.Context(), (*Group)(nil)
	buf, parts, objects := []BFloat16{1, 2}, [][]BFloat16{{1}, {2}}, []any{new(int)}
	for name, call := range map[string]func() error{
		"Barrier":            func() error { return Barrier(ctx, none) },
		"MonitoredBarrier":   func() error { return MonitoredBarrier(ctx, none) },
		"Broadcast":          func() error { return Broadcast(ctx, none, buf, 0) },
		"AllReduce":          func() error { return AllReduce(ctx, none, buf, Sum) },
		"AllReduceCoalesced": func() error { return AllReduceCoalesced(ctx, none, parts, Sum) },
		"Reduce":             func() error { return Reduce(ctx, none, buf, Avg, 0) },
		"ReduceScatter":      func() error { return ReduceScatter(ctx, none, buf, buf, Sum) },
		"ReduceScatterV":     func() error { return ReduceScatterV(ctx, none, buf, parts, Sum) },
		"Scan":               func() error { return Scan(ctx, none, buf, Sum) },
		"ExScan":             func() error { return ExScan(ctx, none, buf, Sum) },
		"AllGather":          func() error { return AllGather(ctx, none, buf, buf) },
		"AllGatherV":         func() error { return AllGatherV(ctx, none, parts, buf) },
		"Gather":             func() error { return Gather(ctx, none, buf, buf, 0) },
		"GatherV":            func() error { return GatherV(ctx, none, parts, buf, 0) },
		"Scatter":            func() error { return Scatter(ctx, none, buf, buf, 0) },
		"ScatterV":           func() error { return ScatterV(ctx, none, buf, parts, 0) },
		"AllToAll":           func() error { return AllToAll(ctx, none, buf, buf) },
		"AllToAllV":          func() error { return IAllToAllV(none, buf, []int{2}, buf, []int{2}).Wait(ctx) },
		"Send":               func() error { return Send(ctx, none, buf, 0) },
		"Recv":               func() error { _, err := Recv(ctx, none, buf, 0); return err },
		"Probe":              func() error { _, _, err := TryProbe(none, 0); return err },
		"SendObjects":        func() error { return SendObjects(ctx, none, objects, 0) },
		"RecvObjects":        func() error { _, err := RecvObjects(ctx, none, objects, 0); return err },
		"BroadcastObjects":   func() error { return BroadcastObjects(ctx, none, objects, 0) },
		"AllGatherObject":    func() error { _, err := AllGatherObject(ctx, none, 1); return err },
		"GatherObject":       func() error { _, err := GatherObject(ctx, none, 1, 0); return err },
		"ScatterObject":      func() error { _, err := ScatterObject(ctx, none, []int{1}, 0); return err },
		"NewGroup":           func() error { _, err := NewGroup(ctx, none, []int{0}); return err },
		"Split":              func() error { _, err := Split(ctx, none, 0, 0); return err },
		"NewMesh":            func() error { _, err := NewMesh(ctx, none, []int{1}, "dp"); return err },
		"Alloc":              func() error { _, err := Alloc[int](none, 1); return err },
		"Free":               func() error { return Free(none, buf) },
	} {
		want := "comm: " + name + ": the group is nil, as it is on ranks that are none of its members"
		if err := call(); err == nil || err.Error() != want || ExitCode(err) != 2 {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
