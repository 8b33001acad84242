package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/testing/simulation"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A program is the calls that all members make, in order.
type program []simulation.Call

func drawProgram(t *rapid.T, size int) program {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) simulation.Call {
		c := simulation.Call{
			Kind: rapid.SampledFrom(simulation.Kinds).Draw(t, "kind"), Count: rapid.SampledFrom([]int{0, 1, 5, 200, 4099}).Draw(t, "count"),
			InPlace: rapid.Bool().Draw(t, "in place"), Ordered: rapid.Bool().Draw(t, "ordered"), Salt: rapid.IntRange(0, 9).Draw(t, "salt"),
		}
		if c.Kind.HasRoot() {
			c.Root = rapid.IntRange(0, size-1).Draw(t, "root")
		}
		return c
	}), 1, 12).Draw(t, "calls")
}

// run makes the calls of p on g. Those that starts names are started, and waited for after some more, or at the end.
func (p program) run(ctx context.Context, g *core.Group, starts func(i int) bool) error {
	type started struct {
		*core.Collective
		*simulation.Part
	}
	var pending []started
	await := func() error {
		s := pending[0]
		pending = pending[1:]
		if err := s.Wait(ctx); err != nil {
			return fmt.Errorf("%v: %w", s.Part, err)
		}
		return s.Check()
	}
	for i, c := range p {
		part := c.Of(g.Rank(), g.Size())
		if starts(i) {
			s := started{new(core.Collective), part}
			g.Start(s.Collective, &part.Args, part.Blocks)
			if pending = append(pending, s); len(pending) > 3 {
				if err := await(); err != nil {
					return err
				}
			}
			continue
		}
		if err := g.Do(ctx, &part.Args, part.Blocks); err != nil {
			return fmt.Errorf("call %d, %v: %w", i+1, part, err)
		}
		if err := part.Check(); err != nil {
			return err
		}
	}
	for len(pending) > 0 {
		if err := await(); err != nil {
			return err
		}
	}
	return nil
}

// TestCallsHaveTheOrderInWhichTheyAreMade: whatever members start, and wait for later, and in whatever order messages
// arrive, every call leaves what it must.
func TestCallsHaveTheOrderInWhichTheyAreMade(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := simulation.Config{
			Size: rapid.IntRange(1, 6).Draw(rt, "size"), Seed: rapid.Uint64().Draw(rt, "seed"),
			ChunkSize: rapid.SampledFrom([]int{0, 40, 500}).Draw(rt, "chunk"),
		}
		p, starts := drawProgram(rt, c.Size), rapid.Uint64().Draw(rt, "starts")
		var errs []error
		simulation.InOrder(t, c, func(w *simulation.World) {
			errs = w.Run(func(g *core.Group) error {
				return p.run(context.Background(), g, func(i int) bool { return starts>>((i+13*g.Rank())%64)&1 != 0 })
			})
		})
		if err := errors.Join(errs...); err != nil {
			rt.Fatalf("%v: %v", c, err)
		}
	})
}

// faults are what becomes of a member while it is in a call. Each says what the member's own call may return.
var faults = map[string]struct {
	happens func(w *simulation.World, g *core.Group, cancel context.CancelFunc)
	own     func(err error) bool
}{
	"dies":     {func(w *simulation.World, g *core.Group, _ context.CancelFunc) { w.Kill(g.Rank()) }, func(error) bool { return true }},
	"leaves":   {func(_ *simulation.World, g *core.Group, _ context.CancelFunc) { go g.Comm.Close() }, is(endpoint.ErrClosed)},
	"gives up": {func(_ *simulation.World, _ *core.Group, cancel context.CancelFunc) { cancel() }, is(context.Canceled)},
	"aborts":   {func(_ *simulation.World, g *core.Group, _ context.CancelFunc) { go g.Abort(errEnough) }, is(errEnough)},
}

var errEnough = errors.New("enough")

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

// names reports whether err says that rank is at fault.
func names(err error, rank int) bool {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	return ok && (f.Rank == rank || slices.ContainsFunc(f.Calls, func(c diagnosis.RankCall) bool { return c.Rank == rank }))
}

// TestAMemberThatFailsAtEachStep: after each part of a message that arrives in a call, something becomes of a member.
// Every other one has its result, or an error that names that member, and no one waits until its time is up.
func TestAMemberThatFailsAtEachStep(t *testing.T) {
	for name, fault := range faults {
		for at, kind := range simulation.Kinds {
			c := simulation.Call{Kind: kind, Count: 90, Ordered: at%2 == 1}
			config := simulation.Config{Size: 3 + at%2, ChunkSize: 400, Seed: testkit.Seed()}
			victim := at % config.Size
			steps := 1
			for step := 0; step < steps; step += testkit.UnlessShort(1, 1+steps/6) {
				text := fmt.Sprintf("member %d %s in %v after %d of %d steps, %v", victim, name, c, step, steps, config)
				simulation.InOrder(t, config, func(w *simulation.World) {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if step > 0 {
						w.At(step, func() { fault.happens(w, w.Groups[victim], cancel) })
					}
					begin := time.Now()
					errs := w.Run(func(g *core.Group) error {
						mine := context.Background()
						if g.Rank() == victim {
							mine = ctx
						}
						return errors.Join(program{c, {Kind: call.KindBarrier}}.run(mine, g, func(int) bool { return false }))
					})
					for r, err := range errs {
						switch {
						case err == nil || step > 0 && r == victim && fault.own(err):
						case step == 0 || !names(err, victim):
							t.Errorf("%s: member %d got %v", text, r, err)
						}
					}
					if took := time.Since(begin); took > simulation.Timeout/2 {
						t.Errorf("%s: it took %v", text, took)
					}
					if step == 0 {
						steps = w.Steps()
					}
				})
			}
		}
	}
}

// TestAMemberThatMakesAnotherCall: no member gets a wrong result without an error, which names the member, and what it
// has called.
func TestAMemberThatMakesAnotherCall(t *testing.T) {
	other := func(c simulation.Call) []simulation.Call {
		kind, count, root := c, c, c
		kind.Kind = simulation.Kinds[(slices.Index(simulation.Kinds, c.Kind)+1)%len(simulation.Kinds)]
		kind.Root = 0
		count.Count += 3
		root.Root = (c.Root + 1) % 3
		if c.Kind == call.KindBarrier {
			return []simulation.Call{kind}
		}
		if !c.Kind.HasRoot() {
			return []simulation.Call{kind, count}
		}
		return []simulation.Call{kind, count, root}
	}
	for _, kind := range simulation.Kinds {
		for _, count := range []int{6, 40_000} { // an eager message, and one of which the receiver hears first
			c := simulation.Call{Kind: kind, Count: count}
			for i, strange := range other(c) {
				for odd := range 3 {
					config := simulation.Config{Size: 3, Seed: uint64(odd)}
					simulation.InOrder(t, config, func(w *simulation.World) {
						errs := w.Run(func(g *core.Group) error {
							mine := c
							if g.Rank() == odd {
								mine = strange
							}
							p := program{mine, {Kind: call.KindBarrier}, {Kind: call.KindAllReduce, Count: 1}}
							return errors.Join(p.run(context.Background(), g, func(int) bool { return false }), g.Compare())
						})
						text := fmt.Sprintf("%v, member %d calls %v (%d)", c, odd, strange, i)
						for r, err := range errs {
							f, ok := errors.AsType[*diagnosis.Failure](err)
							if !ok || f.Kind != diagnosis.Mismatched || !names(err, odd) {
								t.Errorf("%s: member %d got %v, want a mismatch that names it", text, r, err)
							}
						}
					})
				}
			}
		}
	}
}
