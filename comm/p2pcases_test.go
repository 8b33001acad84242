package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Cases 89 and 91 of MPICH's suite: messages to oneself, posted before or after, with the largest tag.
func TestMessagesToOneselfWithTheLargestTag(t *testing.T) {
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		me := g.Rank()
		for _, n := range []int{1, 100_000} {
			early := make([]int32, n)
			recv := IRecv(g, early, AnySource, MaxTag)
			sent := []*Work{ISend(g, make([]int32, n), me, MaxTag), ISend(g, make([]int32, n), me, MaxTag)}
			want := Status{Source: me, Tag: MaxTag, Count: n}
			if err := errors.Join(recv.Wait(ctx), waitAll(ctx, sent)); err != nil || recv.Status() != want {
				return fmt.Errorf("got %+v, %w", recv.Status(), err)
			}
			if st, found, err := TryProbe(g, me, AnyTag); !found || err != nil || st != want {
				return fmt.Errorf("probed %+v, %v, %w", st, found, err)
			}
			if st, err := Recv(ctx, g, early, me, AnyTag); err != nil || st != want {
				return fmt.Errorf("got %+v, %w", st, err)
			}
		}
		return nil
	})
}

// What is sent to oneself is copied: the buffer may be used again at once.
func TestMessagesToOneselfAreCopied(t *testing.T) {
	inWorldOf(t, 1, func(ctx context.Context, g *Group) error {
		v, got := []int{1}, []int{0}
		err := Send(ctx, g, v, 0)
		v[0] = 2
		if _, recvErr := Recv(ctx, g, got, 0); err != nil || recvErr != nil || got[0] != 1 {
			return fmt.Errorf("got %d, %w", got[0], errors.Join(err, recvErr))
		}
		return nil
	})
}

// Case 62 of gloo's suite: a receive whose time is up is as if it had never been, whatever limits it.
func TestAReceiveThatTimesOutHarmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestWorld(t, transports["mem"](t, 2))
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			quick, err := NewGroup(ctx, g, []int{0, 1}, WithTimeout(10*time.Millisecond))
			if err != nil {
				return err
			}
			v := []int{0}
			if _, err := Recv(ctx, quick, v, 1-g.Rank()); !errors.Is(err, ErrTimeout) {
				return fmt.Errorf("got %w, want a timeout", err)
			}
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if _, err := Recv(short, g, v, AnySource, AnyTag); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("got %w, want the context's error", err)
			}
			for _, g := range []*Group{quick, g} {
				if err := Send(ctx, g, []int{g.Rank() + 1}, 1-g.Rank()); err != nil {
					return err
				}
				if _, err := Recv(ctx, g, v, 1-g.Rank()); err != nil || v[0] != 2-g.Rank() {
					return fmt.Errorf("got %d, %w", v[0], err)
				}
			}
			return errors.Join(Barrier(ctx, quick), Barrier(ctx, g))
		})
	})
}

// Case 68 of gloo's suite, on one group: threads of all ranks talk with tags of their own, while others make
// collectives.
func TestManyGoroutinesOnOneGroup(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			const threads, rounds = 8, 50
			next, previous := (g.Rank()+1)%3, (g.Rank()+2)%3
			var wg sync.WaitGroup
			errs := make([]error, threads+2)
			for thread := range threads {
				wg.Go(func() {
					for i := range rounds {
						mark := thread<<16 | i
						out, v := ISend(g, []int{mark}, next, thread), []int{0}
						st, err := Recv(ctx, g, v, []int{previous, AnySource}[i%2], thread)
						if err := errors.Join(err, out.Wait(ctx)); err != nil || v[0] != mark || st.Source != previous {
							errs[thread] = fmt.Errorf("thread %d, round %d: got %#x, %+v, %w", thread, i, v[0], st, err)
							return
						}
					}
				})
			}
			for i := range 2 { // their collectives are all alike, so that the order does not matter
				wg.Go(func() {
					for range rounds {
						v, u := []int{1}, []int{1}
						work := IAllReduce(g, v, Sum)
						if err := errors.Join(AllReduce(ctx, g, u, Sum), work.Wait(ctx)); err != nil || v[0] != 3 || u[0] != 3 {
							errs[threads+i] = fmt.Errorf("got %d and %d, %w", v[0], u[0], err)
							return
						}
					}
				})
			}
			wg.Wait()
			return errors.Join(errs...)
		})
	})
}
