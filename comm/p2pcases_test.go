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

// Case 67 of gloo's suite: messages of nothing keep their place among others.
func TestEmptyMessagesKeepTheirPlace(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
		next, previous := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
		var sent []*Work
		for i := range 20 {
			sent = append(sent, ISend(g, make([]int, i%4), next), ISend[int](g, nil, next))
		}
		for i := range 40 {
			want := i / 2 % 4 * (1 - i%2)
			if st, err := Recv(ctx, g, make([]int, 4), previous); err != nil || st.Count != want {
				return fmt.Errorf("message %d: got %+v, %w, want %d elements", i, st, err, want)
			}
		}
		return waitAll(ctx, sent)
	})
}

// Cases 89 and 91 of MPICH's suite: messages to oneself, posted before or after, with the largest tag.
func TestMessagesToOneselfWithTheLargestTag(t *testing.T) {
	inWorldsOfEverySize(t, func(ctx context.Context, g *Group) error {
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

// Nobody's messages overtake those that have been there longer, so that no sender keeps others from being heard.
func TestAnySourceTakesWhatHasWaitedLongest(t *testing.T) {
	inWorldOf(t, 3, func(ctx context.Context, g *Group) error {
		const many = 100
		turns := []int{1, 2, 1}
		for _, r := range turns {
			if g.Rank() == r {
				for i := range many {
					if err := Send(ctx, g, []int{i}, 0, i); err != nil {
						return err
					}
				}
				if err := Send(ctx, g, []int{0}, 0, many); err != nil {
					return err
				}
			}
			if g.Rank() == 0 { // after this one it has all others
				if _, err := Recv(ctx, g, []int{0}, r, many); err != nil {
					return err
				}
			}
			if err := Barrier(ctx, g); err != nil {
				return err
			}
		}
		for _, r := range turns {
			for i := range many * (1 - min(g.Rank(), 1)) {
				v := []int{0}
				if st, err := Recv(ctx, g, v, AnySource, AnyTag); err != nil || st != (Status{Source: r, Tag: i, Count: 1}) || v[0] != i {
					return fmt.Errorf("got %+v, %w, want number %d of rank %d", st, err, i, r)
				}
			}
		}
		return nil
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
			errs := make([]error, threads+1)
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
			wg.Go(func() {
				for i := range rounds {
					v := []int{i}
					if err := AllReduce(ctx, g, v, Sum); err != nil || v[0] != 3*i {
						errs[threads] = fmt.Errorf("round %d: got %d, %w", i, v[0], err)
						return
					}
				}
			})
			wg.Wait()
			return errors.Join(errs...)
		})
	})
}
