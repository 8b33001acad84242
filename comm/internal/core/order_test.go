package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/testing/simulation"
	"github.com/gorun/gorun/env/testing/testkit"
)

// TestCallsHaveTheOrderInWhichTheyAreMade: whatever members start, and wait for later, and in whatever order messages
// arrive, every call leaves what it must.
func TestCallsHaveTheOrderInWhichTheyAreMade(t *testing.T) {
	for size := range 6 {
		rapid.Check(t, func(rt *rapid.T) {
			c := simulation.Config{
				Size: size + 1, Seed: rapid.Uint64().Draw(rt, "seed"), ChunkSize: rapid.SampledFrom([]int{0, 40, 500}).Draw(rt, "chunk"),
			}
			p, starts := simulation.Draw(rt, c.Size), rapid.Uint64().Draw(rt, "starts")
			var errs []error
			simulation.InOrder(t, c, func(w *simulation.World) {
				errs = w.Run(func(g *core.Group) error {
					return p.RunStarting(context.Background(), g, func(i int) bool { return starts>>((i+13*g.Rank())%64)&1 != 0 })
				})
			})
			if err := errors.Join(errs...); err != nil {
				rt.Fatalf("%v: %v", c, err)
			}
		})
	}
}

// TestWhatIsStartedDuringACall: a call that one goroutine starts after each step of another one's blocking call is
// carried out after it, though nobody makes another call, and whether others are under way or not.
func TestWhatIsStartedDuringACall(t *testing.T) {
	for _, before := range []bool{false, true} {
		for step := range 8 { // of more
			simulation.InOrder(t, simulation.Config{Size: 3, ChunkSize: 40, Seed: uint64(step)}, func(w *simulation.World) {
				last := simulation.Call{Kind: call.KindReduceScatter, Count: 3, Ordered: true}
				p := simulation.Program{{Kind: call.KindAllReduce, Count: 20}}
				if before {
					p = simulation.Program{{Kind: call.KindBarrier}, p[0]}
				}
				late, started := new(core.Collective), make(chan struct{})
				part := last.Of(0, 3)
				w.At(step, func() {
					w.Groups[0].Start(late, &part.Args, nil)
					close(started)
				})
				for r, err := range w.Run(func(g *core.Group) error {
					if g.Rank() != 0 {
						return append(p[:len(p):len(p)], last).Run(context.Background(), g)
					}
					err := p.RunStarting(context.Background(), g, func(i int) bool { return before && i == 0 })
					<-started
					return errors.Join(err, late.Wait(context.Background()), part.Check())
				}) {
					if err != nil {
						t.Errorf("started after %d steps, another one under way %t: member %d: %v", step, before, r, err)
					}
				}
			})
		}
	}
}

// TestGivingUpWaitingFailsTheGroup: a member waits no longer for a call that it has started, which then has failed.
func TestGivingUpWaitingFailsTheGroup(t *testing.T) {
	simulation.InOrder(t, simulation.Config{Size: 2}, func(w *simulation.World) {
		errs := w.Run(func(g *core.Group) error {
			if g.Rank() == 1 {
				time.Sleep(2 * time.Second)
				return simulation.Call{Kind: call.KindBarrier}.Do(g)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return simulation.Program{{Kind: call.KindBarrier}}.RunStarting(ctx, g, func(int) bool { return true })
		})
		if !errors.Is(errs[0], context.DeadlineExceeded) || !simulation.Names(errs[1], 0) {
			t.Errorf("got %v, want a deadline, and an error that names member 0", errs)
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
						p := simulation.Program{c, {Kind: call.KindBarrier}}
						return p.RunStarting(mine, g, func(int) bool { return at%3 == 0 })
					})
					for r, err := range errs {
						switch {
						case err == nil || step > 0 && r == victim && fault.own(err):
						case step == 0 || !simulation.Names(err, victim):
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

// TestAMemberThatMakesAnotherCall: no member gets a wrong result without an error, which names that member.
func TestAMemberThatMakesAnotherCall(t *testing.T) {
	for _, kind := range simulation.Kinds {
		for _, count := range []int{6, 40_000} { // an eager message, and one of which the receiver hears first
			c := simulation.Call{Kind: kind, Count: count}
			for _, strange := range c.Deviations() {
				for odd := range 3 {
					simulation.InOrder(t, simulation.Config{Size: 3, Seed: uint64(odd)}, func(w *simulation.World) {
						for r, err := range w.Run(func(g *core.Group) error {
							p := simulation.Program{c}
							if g.Rank() == odd {
								p[0] = strange
							}
							if kind.HasRoot() && count < 10 { // more calls than members remember, in which its root waits for nobody
								p = append(p, slices.Repeat(simulation.Program{{Kind: call.KindBroadcast, Count: 5}}, 200*(odd%2))...)
							}
							p = append(p, simulation.Program{{Kind: call.KindBarrier}, {Kind: call.KindAllReduce, Count: 1}}...)
							return errors.Join(p.Run(context.Background(), g), g.Compare())
						}) {
							f, ok := errors.AsType[*diagnosis.Failure](err)
							if !ok || f.Kind != diagnosis.Mismatched || !simulation.Names(err, odd) {
								t.Errorf("%v, member %d calls %v: member %d got %v, want a mismatch that names it", c, odd, strange, r, err)
							}
						}
					})
				}
			}
		}
	}
}

// TestCodeOfTheCallersThatDoesNotReturn: it ends a call on one member, by a panic or by Goexit, the first time that it
// runs there or a later one. All others have their results, or an error that names the member. So has what the member
// itself has started before.
func TestCodeOfTheCallersThatDoesNotReturn(t *testing.T) {
	const size, odd = 3, 1
	for name, end := range map[string]func(){"panic": func() { panic("worn out") }, "goexit": runtime.Goexit} {
		for _, starts := range []bool{false, true} {
			for at := range 3 {
				text := fmt.Sprintf("%s at run %d, started %t", name, at+1, starts)
				simulation.InOrder(t, simulation.Config{Size: size, ChunkSize: 40}, func(w *simulation.World) {
					left := at
					breaks := func(rank int) *call.Reduction {
						return call.NewOwn("sum", reduce.Uint64, 1, true, func(dst, a, b []byte) {
							reduce.For(reduce.Uint64, reduce.Sum)(dst, a, b)
							if rank == odd {
								if left--; left < 0 {
									end()
								}
							}
						})
					}
					errs := w.Run(func(g *core.Group) error {
						part := simulation.Call{Kind: call.KindAllReduce, Count: 60}.Of(g.Rank(), size)
						part.Args.Op = breaks(g.Rank())
						next := simulation.Program{{Kind: call.KindBarrier}, {Kind: call.KindBarrier}}
						ended := make(chan error, 1)
						var behind core.Collective
						go func() {
							err := errors.New("its goroutine has ended")
							defer func() {
								if v := recover(); v != nil {
									err = fmt.Errorf("panic: %v", v)
								}
								ended <- err
							}()
							if !starts {
								err = g.Do(context.Background(), &part.Args, nil)
								return
							}
							var c core.Collective
							g.Start(&c, &part.Args, nil)
							g.Start(&behind, &core.Args{Kind: call.KindBarrier}, nil) // which somebody must end, too
							err = errors.Join(c.Wait(context.Background()), behind.Wait(context.Background()))
						}()
						err := <-ended
						if err == nil {
							err = part.Check()
						}
						return errors.Join(err, next.Run(context.Background(), g))
					})
					for r, err := range errs {
						f, ok := errors.AsType[*diagnosis.Failure](err)
						if !ok || f.Kind != diagnosis.Aborted || f.Rank != odd {
							t.Errorf("%s: member %d got %v, want an error that names member %d", text, r, err, odd)
						}
					}
				})
			}
		}
	}
}
