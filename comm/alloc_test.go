package comm

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
)

// A blocking Send or Recv, and a step of a collective, allocate nothing once there have been some.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector lets pools forget")
	}
	sendAndReceive := func(ctx context.Context, g *Group, buf []byte) func() error {
		peer := 1 - g.Rank()
		return func() error {
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
	}
	step := func(ctx context.Context, g *Group, buf []byte) func() error {
		c := &collective{g: g, elem: 1, call: endpoint.Call{Op: uint8(callAllGather)}, ctx: ctx, seq: 1, deadline: time.Now().Add(time.Minute)}
		if err := g.lane.Begin(c.seq, c.call); err != nil {
			return func() error { return err }
		}
		in, peer, all := make([]byte, len(buf)), 1-g.Rank(), plan.Range{Hi: len(buf)}
		t := &task{plan: plan.Plan{{To: peer, Send: all, From: peer, Recv: all}}, src: vector{buf: buf}, dst: vector{buf: in}}
		return func() error {
			return c.execute(t)
		}
	}
	for name, of := range map[string]func(context.Context, *Group, []byte) func() error{"send and receive": sendAndReceive, "step": step} {
		for _, transport := range []string{"tcp", "shm"} {
			for _, n := range []int{0, 8, 1 << 10, 64 << 10, 1 << 20} { // sent ahead, and asked for
				t.Run(fmt.Sprintf("%s of %d over %s", name, n, transport), func(t *testing.T) {
					w := worldOver(t, transport, 2)
					defer w.close()
					measureAllocs(t, w, n, of)
				})
			}
		}
	}
}

// measureAllocs counts what both ranks of a world allocate while each carries out an operation, again and again.
func measureAllocs(t *testing.T, w *testWorld, n int, of func(context.Context, *Group, []byte) func() error) {
	const rounds = 200
	w.run(func(ctx context.Context, g *Group) error {
		operation := of(ctx, g, make([]byte, n))
		var err error
		repeat := func() {
			if err == nil {
				err = operation()
			}
		}
		for range rounds {
			repeat()
		}
		if g.Rank() == 1 {
			for range rounds + 1 { // AllocsPerRun begins with one that it does not count
				repeat()
			}
		} else if allocs := testing.AllocsPerRun(rounds, repeat); allocs >= 1 {
			t.Errorf("%v allocations", allocs)
		}
		return err
	})
}

// A blocking collective of plain elements allocates nothing once there have been some, whatever its plan.
func TestCollectivesAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector lets pools forget")
	}
	const ranks, rounds = 4, 40
	calls := map[string]func(ctx context.Context, g *Group, a, b []float32) error{
		"barrier":        func(ctx context.Context, g *Group, _, _ []float32) error { return Barrier(ctx, g) },
		"broadcast":      func(ctx context.Context, g *Group, a, _ []float32) error { return Broadcast(ctx, g, a, 1) },
		"all-reduce":     func(ctx context.Context, g *Group, a, _ []float32) error { return AllReduce(ctx, g, a, Sum) },
		"reduce":         func(ctx context.Context, g *Group, a, _ []float32) error { return Reduce(ctx, g, a, Max, 1) },
		"all-gather":     func(ctx context.Context, g *Group, a, b []float32) error { return AllGather(ctx, g, b, a) },
		"reduce-scatter": func(ctx context.Context, g *Group, a, b []float32) error { return ReduceScatter(ctx, g, a, b, Sum) },
		"all-to-all": func(ctx context.Context, g *Group, a, b []float32) error {
			return AllToAll(ctx, g, b[:len(a)], b[len(a):2*len(a)])
		},
	}
	for _, n := range []int{512, 300 << 10} { // the longer ones travel in pieces
		w := newTestWorld(t, transports["tcp"](t, ranks))
		for name, call := range calls {
			w.run(func(ctx context.Context, g *Group) error {
				a, b := make([]float32, n), make([]float32, ranks*n)
				var err error
				repeat := func() {
					if err == nil {
						err = call(ctx, g, a, b)
					}
				}
				for range rounds {
					repeat()
				}
				if g.Rank() > 0 {
					for range rounds + 1 { // AllocsPerRun begins with one that it does not count
						repeat()
					}
				} else if allocs := testing.AllocsPerRun(rounds, repeat); allocs >= 1 {
					t.Errorf("%s of %d elements: %v allocations", name, n, allocs)
				}
				return err
			})
		}
		w.close()
	}
}
