package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// goroutine returns the name of the goroutine that calls it.
func goroutine() string {
	stack := make([]byte, 64)
	name, _, _ := bytes.Cut(stack[:runtime.Stack(stack, false)], []byte(" ["))
	return string(name)
}

// A call that waits for long polls, in its own goroutine. If the function returns an error, the call ends with it, and
// the other members learn which rank has given up.
func TestWithPoll(t *testing.T) {
	errPoll := errors.New("interrupted")
	for name, call := range map[string]func(ctx context.Context, g *Group) error{
		"AllReduce": func(ctx context.Context, g *Group) error { return AllReduce(ctx, g, make([]int, 10), Sum) },
		"Barrier":   Barrier,
		"Gather":    func(ctx context.Context, g *Group) error { return Gather(ctx, g, make([]int, 2), []int{1}, 0) },
		"Send": func(ctx context.Context, g *Group) error {
			return Send(ctx, g, make([]byte, 1<<20), 1)
		},
		"Work.Wait of a collective": func(ctx context.Context, g *Group) error { return IBarrier(g).Wait(ctx) },
		"Work.Wait of a message": func(ctx context.Context, g *Group) error {
			return ISend(g, make([]byte, 1<<20), 1).Wait(ctx)
		},
		"a call behind another one": func(ctx context.Context, g *Group) error {
			IBarrier(g)
			return Barrier(ctx, g)
		},
		"NewGroup":        func(ctx context.Context, g *Group) error { _, err := NewGroup(ctx, g, []int{0}); return err },
		"AllGatherObject": func(ctx context.Context, g *Group) error { _, err := AllGatherObject(ctx, g, 1); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
				w := world(2)
				defer w.close()
				w.run(func(ctx context.Context, g *Group) error {
					if err := Barrier(ctx, g); err != nil { // so that ranks share memory, if they can
						return err
					}
					if g.Rank() == 1 {
						<-g.Done()
						if e, ok := errors.AsType[*AbortError](g.Err()); !ok || e.FailedRank() != 0 || e.Err.Error() != errPoll.Error() {
							return fmt.Errorf("got %w", g.Err())
						}
						return nil
					}
					me, polls := goroutine(), 0
					g.world.Poll = func() error {
						if goroutine() != me {
							return errors.New("polled in another goroutine")
						}
						if polls++; polls == 2 {
							return errPoll
						}
						return nil
					}
					began := time.Now()
					if err := call(ctx, g); !errors.Is(err, errPoll) || time.Since(began) < 200*time.Millisecond {
						return fmt.Errorf("after %v: got %w", time.Since(began), err)
					}
					return nil
				})
			})
		})
	}
}

// A receive that nothing matches ends alone. WaitFor ends no operation, and what the group does in its own goroutine
// does not poll.
func TestWithPollTheGroupGoesOn(t *testing.T) {
	errPoll := errors.New("interrupted")
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			if g.Rank() == 1 {
				if _, err := Recv(ctx, g, []int{0}, 0, 1); err != nil { // until rank 0 has waited
					return err
				}
				return errors.Join(Send(ctx, g, []int{1}, 0, 2), Barrier(ctx, g))
			}
			var polls atomic.Int32
			var silent atomic.Bool
			g.world.Poll = func() error {
				if silent.Load() {
					return nil
				}
				polls.Add(1)
				return errPoll
			}
			barrier := IBarrier(g)
			_, err := Recv(ctx, g, []int{0}, 1)
			if !errors.Is(err, errPoll) {
				return fmt.Errorf("Recv: %w", err)
			}
			recv := IRecv(g, []int{0}, 1, 2)
			for _, work := range []*Work{recv, barrier} {
				if done, err := work.WaitFor(time.Minute); done || !errors.Is(err, errPoll) {
					return fmt.Errorf("WaitFor: %v, %w", done, err)
				}
			}
			if n := polls.Load(); n != 3 {
				return fmt.Errorf("polled %d times", n)
			}
			silent.Store(true)
			for _, work := range []*Work{recv, barrier} {
				for _, d := range []time.Duration{0, time.Millisecond} {
					if done, err := work.WaitFor(d); done || err != nil {
						return fmt.Errorf("WaitFor(%v): %v, %w", d, done, err)
					}
				}
			}
			if err := Send(ctx, g, []int{1}, 1, 1); err != nil {
				return err
			}
			for _, work := range []*Work{recv, barrier} {
				if done, err := work.WaitFor(time.Minute); !done || err != nil {
					return fmt.Errorf("WaitFor: %v, %w", done, err)
				}
			}
			return nil
		})
	})
}

// Init polls as well.
func TestInitPolls(t *testing.T) {
	errPoll := errors.New("interrupted")
	me := goroutine()
	_, err := Init(t.Context(), WithStore(NewMemStore()), WithRank(0, 2), WithPoll(func() error {
		if goroutine() != me {
			return nil
		}
		return errPoll
	}))
	if !errors.Is(err, errPoll) {
		t.Errorf("got %v", err)
	}
}
