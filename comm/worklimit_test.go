package comm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/env/testing/testkit"
)

// The group's timeout holds for a Work from its start, whoever waits, and how.
func TestTheTimeOfAWorkCountsFromItsStart(t *testing.T) {
	const limit = time.Minute // of the groups of tests
	for name, c := range map[string]struct {
		wait  func(ctx context.Context, w *Work)
		after time.Duration
	}{
		"Done": {func(_ context.Context, w *Work) { <-w.Done() }, limit},
		"Err": {func(_ context.Context, w *Work) {
			for w.Err() == nil {
				time.Sleep(limit / 10)
			}
		}, limit + limit/10},
		"Wait": {func(ctx context.Context, w *Work) { _ = w.Wait(ctx) }, limit},
		"Wait, later": {func(ctx context.Context, w *Work) {
			time.Sleep(limit / 2)
			_ = w.Wait(ctx)
		}, limit},
		"Wait, too late": {func(ctx context.Context, w *Work) {
			time.Sleep(2 * limit)
			_ = w.Wait(ctx)
		}, 2*limit + core.DiagnosisTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, w *testWorld) {
				w.run(func(ctx context.Context, g *Group) error {
					if err := Barrier(ctx, g); err != nil || g.Rank() == 1 {
						return err
					}
					start := time.Now()
					work := IRecv(g, []int{0}, 1)
					c.wait(ctx, work)
					err := work.Wait(ctx)
					wantPeerError(t, 0, err, 1, "timed out after 1m0s: has not sent what Recv #1 waits for: its last call was Barrier #1")
					if took := time.Since(start); took < limit || took > c.after {
						return fmt.Errorf("it took %v, want %v", took, c.after)
					}
					return g.core.Comm.Err() // that of the group, which goes on
				})
			})
		})
	}
}

// Ten thousand sends that nobody receives end when their time is up, though nobody calls Wait, and with them the group.
func TestTenThousandSendsThatOnlyAreLookedAt(t *testing.T) {
	testkit.WithoutRace(t)
	inBubble(t, 2, func(t *testing.T, w *testWorld) {
		w.run(func(ctx context.Context, g *Group) error {
			if err := Barrier(ctx, g); err != nil || g.Rank() == 1 {
				return err
			}
			works := make([]*Work, 10_000)
			for i := range works {
				works[i] = ISend(g, make([]byte, 1000), 1)
			}
			if n := runtime.NumGoroutine(); n > 100 {
				return fmt.Errorf("%d goroutines before anybody looks", n)
			}
			start, failed := time.Now(), 0
			for _, work := range works {
				<-work.Done()
				if _, late := errors.AsType[*PeerError](work.Err()); late {
					failed++
				}
			}
			if took := time.Since(start); took != time.Minute || failed < len(works)/2 || g.core.Comm.Err() == nil {
				return fmt.Errorf("%d failed after %v, the group has failed: %v", failed, took, g.core.Comm.Err())
			}
			return nil
		})
	})
}

// Close ends what waits for a Work on behalf of who only looks: the test's package finds what would be left.
func TestCloseEndsAWorkThatIsLookedAt(t *testing.T) {
	w := newTestWorld(t, transports["tcp"](t, 2))
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		if err := Barrier(ctx, g); err != nil || g.Rank() == 1 {
			return err
		}
		work := IRecv(g, []int{0}, 1)
		done := work.Done()
		if err := g.Close(); err != nil {
			return err
		}
		<-done
		if err := work.Err(); !errors.Is(err, ErrClosed) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}
