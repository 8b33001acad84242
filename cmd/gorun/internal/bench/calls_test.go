package bench

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.OwnSettings(m).Run()) }

// inWorld runs program as so many ranks.
func inWorld(t *testing.T, ranks int, program func(ctx context.Context, g *comm.Group) error) {
	t.Helper()
	store := comm.NewMemStore()
	defer func() { _ = store.Close() }()
	var wg sync.WaitGroup
	for rank := range ranks {
		wg.Go(func() {
			g, err := comm.Init(t.Context(), comm.WithStore(store), comm.WithRank(rank, ranks))
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
				return
			}
			if err := program(t.Context(), g); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
			if err := g.Close(); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
}

// forms is the call of every form of every experiment.
func forms(ctx context.Context, g *comm.Group, c *Config, count int, each func(name string, c *call) error) error {
	for _, e := range c.experiments(g.Size()) {
		call, free, err := e.typ.caller(ctx, g, e, count*g.Size())
		if err != nil {
			return err
		}
		for _, inPlace := range []bool{false, true} {
			if inPlace && !e.in || !inPlace && !e.out || !e.moves() {
				continue
			}
			name := fmt.Sprintf("%s %s %s root %d, in place: %t", e.name, e.typ.name, e.op, e.root, inPlace)
			if err := each(name, call(count, inPlace)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := free(); err != nil {
			return err
		}
	}
	return nil
}

// TestCalls: comm does every call of every type right, whether the buffers are fresh or not.
func TestCalls(t *testing.T) {
	for _, ranks := range []int{1, 2, 3} {
		inWorld(t, ranks, func(ctx context.Context, g *comm.Group) error {
			c := config(Operations()...)
			c.Alloc = ranks == 2
			c.Type, c.Op, c.Root, c.Checks = All, All, AllRoots, 2
			m := meter{ctx: ctx, g: g, c: &c}
			return forms(ctx, g, &c, 5, func(_ string, call *call) error {
				wrong, err := m.check(call)
				if err == nil && wrong != 0 {
					err = fmt.Errorf("%d elements are wrong", wrong)
				}
				return err
			})
		})
	}
}

// TestCallsThatDoNothing are found to be wrong.
func TestCallsThatDoNothing(t *testing.T) {
	inWorld(t, 2, func(ctx context.Context, g *comm.Group) error {
		c := config(Operations()...)
		c.Op, c.Checks = All, 1
		m := meter{ctx: ctx, g: g, c: &c}
		return forms(ctx, g, &c, 700, func(_ string, call *call) error {
			call.do = func() error { return nil }
			wrong, err := m.check(call)
			if err == nil && (wrong < 100 || m.wrong == 0) {
				err = fmt.Errorf("only %d elements are wrong, %d of them here", wrong, m.wrong)
			}
			return err
		})
	})
}

// TestMeasuringAllocatesNothing of its own.
func TestMeasuringAllocatesNothing(t *testing.T) {
	inWorld(t, 1, func(ctx context.Context, g *comm.Group) error {
		c := config(allReduce)
		c.Dirty = true
		m := meter{ctx: ctx, g: g, c: &c}
		return forms(ctx, g, &c, 10_000, func(_ string, call *call) (err error) {
			call.do = func() error { return nil }
			if allocations := testing.AllocsPerRun(10, func() { _, err = m.batch(call, 10) }); allocations > 0 {
				return fmt.Errorf("%v allocations", allocations)
			}
			return err
		})
	})
}

// TestMeasure: as many calls as were asked for, no more, and one after the other.
func TestMeasure(t *testing.T) {
	inWorld(t, 1, func(ctx context.Context, g *comm.Group) error {
		for _, tt := range []struct {
			iterations, warmup int
			p99                bool
			want, calls        int
		}{
			{iterations: 7, warmup: 2, want: 7, calls: 2 + 7},
			{iterations: 7, warmup: 2, p99: true, want: 7, calls: 2 + 7 + 7},
			{want: most, calls: estimateCalls + most}, // they take no time
		} {
			c := config(allReduce)
			c.Iterations, c.Warmup, c.P99 = tt.iterations, tt.warmup, tt.p99
			m := meter{ctx: ctx, g: g, c: &c}
			calls := 0
			r, err := m.measure(&call{do: func() error { calls++; return nil }, clear: func() {}})
			if err != nil {
				return err
			}
			if r.calls != tt.want || calls != tt.calls || r.mean < 0 || r.p50 > r.p99 || tt.p99 != (r.p99 > 0) {
				t.Errorf("%+v: %d calls, and %+v", tt, calls, r)
			}
		}
		return nil
	})
}
