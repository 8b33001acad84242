package comm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/transport"
)

func TestAbortReachesEveryMember(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		defer w.close()
		for r, err := range w.results(func(ctx context.Context, g *Group) error {
			if err := Barrier(ctx, g); err != nil {
				return err
			}
			if g.Rank() == 1 {
				g.Abort(errors.New("the loss is NaN"))
			}
			for { // the news may come after an operation for which all has arrived
				if err := AllReduce(ctx, g, []float64{1}, Sum); err != nil {
					return err
				}
			}
		}) {
			var abort *AbortError
			if !errors.As(err, &abort) || abort.Rank != 1 || !strings.Contains(err.Error(), "rank 1 aborted the group: the loss is NaN") {
				t.Errorf("rank %d got %v, want an AbortError by rank 1", r, err)
			}
		}
	})
}

// A rank that makes no call learns from Done that its group has failed, and from Err why.
func TestDoneAndErr(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			part, err := NewGroup(ctx, g, g.Ranks())
			if err != nil {
				return err
			}
			if part.Err() != nil {
				return fmt.Errorf("before: %w", part.Err())
			}
			if err := Barrier(ctx, g); err != nil {
				return err
			}
			if part.Rank() == 1 {
				part.Abort(errors.New("no data"))
			}
			<-part.Done()
			culprit, ok := errors.AsType[RankError](part.Err())
			if !ok || culprit.FailedRank() != 1 || part.Err().Error() != "comm: Group.Err: rank 1 aborted the group: no data" {
				return fmt.Errorf("got %w", part.Err())
			}
			if g.Err() != nil {
				return fmt.Errorf("another group has failed: %w", g.Err())
			}
			_ = part.Close() // it has failed
			if !errors.Is(part.Err(), ErrClosed) {
				return fmt.Errorf("once closed: %w", part.Err())
			}
			return Barrier(ctx, g)
		})
	})
}

// The one that aborts has no connection yet, and leaves at once.
func TestAbortReachesWhoHasNeverTalked(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(6)
		defer w.close()
		for r, err := range w.results(func(ctx context.Context, g *Group) error {
			if g.Rank() == 1 {
				g.Abort(errors.New("no data"))
				return g.Close()
			}
			_, err := Recv(ctx, g, []int{0}, (g.Rank()+2)%6)
			return err
		}) {
			var abort *AbortError
			if r != 1 && (!errors.As(err, &abort) || abort.Rank != 1) {
				t.Errorf("rank %d got %v, want an AbortError by rank 1", r, err)
			}
		}
	})
}

// slowly is a transport whose streams take longer to open than a call that fails waits.
type slowly struct{ transport.Transport }

func (s slowly) Dial(ctx context.Context, rank int) (net.Conn, error) {
	time.Sleep(core.CloseNotifyTimeout / 2)
	return s.Transport.Dial(ctx, rank)
}

func TestAbortReachesWhoIsFarAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trs := transports["mem"](t, 2)
		for r := range trs {
			trs[r] = slowly{trs[r]}
		}
		w := newTestWorld(t, trs)
		defer w.close()
		errs := w.results(func(ctx context.Context, g *Group) error {
			if g.Rank() == 1 {
				g.Abort(errors.New("no data"))
				return g.Close()
			}
			time.Sleep(core.CloseNotifyTimeout) // it has nobody to talk to
			return Barrier(ctx, g)
		})
		if abort, ok := errors.AsType[*AbortError](errs[0]); !ok || abort.Rank != 1 || errs[1] != nil {
			t.Errorf("got %v, want an AbortError by rank 1 on rank 0", errs)
		}
	})
}
