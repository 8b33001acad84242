package comm

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Cases 89 and 94 of MPICH's suite: a probe tells how long a message is, oneself's too, and leaves it to be received.
func TestProbeTellsWhatARecvWouldGet(t *testing.T) {
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		next, previous := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
		for _, n := range []int{0, 3, 50_000} {
			send := ISend(g, make([]float64, n), next, 5)
			want := Status{Source: previous, Tag: 5, Count: n}
			st, err := Probe(ctx, g, AnySource, AnyTag)
			if err != nil || st != want {
				return fmt.Errorf("got %+v, %w, want %+v", st, err, want)
			}
			if st, found, err := TryProbe(g, previous, 5); !found || err != nil || st != want {
				return fmt.Errorf("tried and got %+v, %v, %w, want %+v", st, found, err, want)
			}
			if _, found, err := TryProbe(g, previous, 6); found || err != nil {
				return fmt.Errorf("found a message that nobody sent, or %w", err)
			}
			st, err = Recv(ctx, g, make([]float64, st.Count), st.Source, st.Tag)
			if err := errors.Join(err, send.Wait(ctx)); err != nil || st != want {
				return fmt.Errorf("received %+v, %w", st, err)
			}
			if _, found, err := TryProbe(g, AnySource, AnyTag); found || err != nil {
				return fmt.Errorf("found what has been received, or %w", err)
			}
			if err := Barrier(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestProbeCanBeGivenUp(t *testing.T) {
	w := newTestWorld(t, transports["mem"](t, 2))
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := Probe(short, g, AnySource); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %w", err)
		}
		return Barrier(ctx, g)
	})
}
