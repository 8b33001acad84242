package comm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What PeerError says of the group: messages to and from a rank that has closed the group, and receives that nobody has
// sent anything for, fail alone.
func TestPeerErrorsThatLeaveTheGroupUsable(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			part, err := NewGroup(ctx, g, []int{0, 1, 2}, WithTimeout(20*time.Second))
			if err != nil {
				return err
			}
			if g.Rank() == 2 {
				return errors.Join(part.Close(), Barrier(ctx, g))
			}
			if err := Barrier(ctx, g); err != nil {
				return err
			}
			_, recv := Recv(ctx, part, []int{0}, 2)
			_, probe := Probe(ctx, part, 2)
			for _, err := range []error{Send(ctx, part, []int{1}, 2), recv, probe, SendObjects(ctx, part, []any{1}, 2)} {
				var peer *PeerError
				if !errors.As(err, &peer) || peer.Rank != 2 {
					return fmt.Errorf("got %w", err)
				}
			}
			return swap(ctx, part, 1-g.Rank())
		})
	})
	t.Run("late", func(t *testing.T) {
		inBubble(t, 2, func(t *testing.T, w *testWorld) {
			w.run(func(ctx context.Context, g *Group) error {
				part, err := NewGroup(ctx, g, []int{0, 1}, WithTimeout(100*time.Millisecond))
				if err != nil {
					return err
				}
				if g.Rank() == 0 {
					_, err := Recv(ctx, part, []int{0}, 1)
					var peer *PeerError
					if !errors.As(err, &peer) || peer.Rank != 1 || !errors.Is(err, ErrTimeout) {
						return fmt.Errorf("got %w", err)
					}
				}
				if err := Barrier(ctx, g); err != nil {
					return err
				}
				return part.core.Comm.Err()
			})
		})
	})
}

// Calls with a context that has ended do not start, and leave the group as it is.
func TestAContextThatHasEndedBefore(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			peer := 1 - g.Rank()
			ended, cancel := context.WithCancel(ctx)
			cancel()
			for name, call := range map[string]func() error{
				"Send":        func() error { return Send(ended, g, []int{-2}, peer) },
				"Recv":        func() error { _, err := Recv(ended, g, []int{0}, peer); return err },
				"Probe":       func() error { _, err := Probe(ended, g, AnySource); return err },
				"SendObjects": func() error { return SendObjects(ended, g, []any{-2}, peer) },
				"RecvObjects": func() error { _, err := RecvObjects(ended, g, []any{new(int)}, peer); return err },
				"Barrier":     func() error { return Barrier(ended, g) },
				"large Send":  func() error { return Send(ended, g, make([]int, 100_000), peer) },
			} {
				want := "comm: " + strings.TrimPrefix(name, "large ") + ": context canceled"
				if err := call(); !errors.Is(err, context.Canceled) || err.Error() != want {
					return fmt.Errorf("got %w, want %s", err, want)
				}
			}
			err := Send(ended, g, []int{0}, 17)
			if _, wrong := errors.AsType[*ArgumentError](err); !wrong {
				return fmt.Errorf("a wrong argument: got %w", err)
			}
			if calls := len(g.Flight().Transfers); calls != 0 {
				return fmt.Errorf("%d calls have started", calls)
			}
			return swap(ctx, g, peer)
		})
	})
}

// swap lets g's rank and peer swap their ranks.
func swap(ctx context.Context, g *Group, peer int) error {
	in := []int{-1}
	works := Batch(SendOp(g, []int{g.Rank()}, peer), RecvOp(g, in, peer))
	for _, w := range works {
		if err := w.Wait(ctx); err != nil {
			return err
		}
	}
	if in[0] != peer {
		return fmt.Errorf("got %d from rank %d", in[0], peer)
	}
	return nil
}
