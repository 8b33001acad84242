package comm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestCloseDuringCalls: other goroutines call on a group until it is closed. Close compares calls before that, and must
// not count as one: the other ranks, which are in the same calls, would take them for others.
func TestCloseDuringCalls(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		for r, err := range w.results(func(ctx context.Context, g *Group) error {
			for call := 0; ; call++ {
				if call == 10 && g.Rank() == 0 {
					if err := g.core.Compare(); err != nil { // what Close does while none of the calls is under way
						return err
					}
				}
				if call == 20 && g.Rank() == 0 {
					return g.Close()
				}
				if err := Barrier(ctx, g); err != nil {
					return err
				}
			}
		}) {
			if died, ok := errors.AsType[*PeerError](err); r != 0 && (!ok || died.Rank != 0) || r == 0 && err != nil {
				t.Errorf("rank %d: %v, want that rank 0 has left", r, err)
			}
		}
		for _, g := range w.groups[1:] {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestCloseSaysWhatNobodyHasWaitedFor: an I-form whose Work nobody has waited for gets through, or Close says that it
// has not, and the other rank gets that as the cause.
func TestCloseSaysWhatNobodyHasWaitedFor(t *testing.T) {
	const long, unsent = 1 << 20, ", and has not sent the message that it had announced: nobody there has waited for that Send"
	send := func(times, n int) func(g *Group) {
		return func(g *Group) {
			for range times {
				ISend(g, make([]int, n), 1, 5)
			}
		}
	}
	recv := func(n int) func(ctx context.Context, g *Group) error {
		return func(ctx context.Context, g *Group) error {
			_, err := Recv(ctx, g, make([]int, n), 0, 5)
			return err
		}
	}
	nothing := func(context.Context, *Group) error { return nil }
	to1 := func(i int) string { return fmt.Sprintf("Send #%d (tag 5) to rank 1", i) }
	for name, c := range map[string]struct {
		start  func(g *Group) // on rank 0, which then closes its world
		other  func(ctx context.Context, g *Group) error
		closed string // what Close says of: nothing, if that is empty
		cause  string // why the other rank's call fails; empty: it does not
	}{
		"short message": {send(1, 1), recv(1), "", ""},
		"long message":  {send(1, long), recv(long), to1(1), unsent},
		"messages": {
			send(10, long), recv(long),
			fmt.Sprintf("%s, %s, %s, %s, %s, %s, %s, %s and 2 more", to1(1), to1(2), to1(3), to1(4), to1(5), to1(6), to1(7), to1(8)), unsent,
		},
		"message to itself":  {func(g *Group) { ISend(g, make([]int, long), 0) }, nothing, "", ""},
		"receive of nothing": {func(g *Group) { IRecv(g, make([]int, 1), 1) }, nothing, "", ""},
		"collective":         {func(g *Group) { IAllReduce(g, make([]int, 1), Sum) }, nothing, "AllReduce #1", ""},
		"watched collective": {func(g *Group) { IAllReduce(g, make([]int, 1), Sum).Done() }, nothing, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			onTransports(t, []string{"mem", "tcp", "shm"}, func(t *testing.T, world func(int) *testWorld) {
				w := world(2)
				defer w.close()
				closed := make(chan struct{})
				errs := w.results(func(ctx context.Context, g *Group) error {
					if g.Rank() == 0 {
						defer close(closed)
						c.start(g)
						return g.Close()
					}
					<-closed
					return c.other(ctx, g)
				})
				text := fmt.Sprintf("comm: Close: nobody has waited for %s, which had not ended: call Work.Wait before Close", c.closed)
				if err := errs[0]; (c.closed == "") != (err == nil) || err != nil && err.Error() != text {
					t.Errorf("Close: %v, want %q", err, c.closed)
				}
				if err := errs[1]; (c.cause == "") != (err == nil) || err != nil && !strings.HasSuffix(err.Error(), "has left (closed the group)"+c.cause) {
					t.Errorf("the other rank: %v, want %q", err, c.cause)
				}
			})
		})
	}
}
