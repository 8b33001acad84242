package comm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// Case 58: buffers are used again at once, for calls of every short length, as fast as they go.
func TestBuffersAreUsedAgainAtOnce(t *testing.T) {
	testkit.WithoutRace(t)
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(3)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			buf := make([]uint8, 70)
			for i := range testkit.UnlessShort(5_000, 500) {
				v := buf[:1+i%len(buf)]
				for k := range v {
					v[k] = uint8(i + k + g.Rank())
				}
				if err := same("AllReduce", AllReduce(ctx, g, v, Sum), v, func(k int) uint8 { return uint8(3*(i+k) + 3) }); err != nil {
					return fmt.Errorf("number %d: %w", i, err)
				}
			}
			return nil
		})
	})
}

// Case 97 of ULFM's suite: a group is aborted with everything under way in it, and the next one made of the same
// parent.
func TestAbortedGroupsAreReplaced(t *testing.T) {
	testkit.WithoutRace(t)
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(4)
		defer w.close()
		reason := errors.New("enough")
		before := 0
		for i := range testkit.UnlessShort(100, 20) {
			w.run(func(ctx context.Context, g *Group) error {
				part, err := NewGroup(ctx, g, []int{0, 1, 2, 3})
				if err != nil {
					return err
				}
				works := []*Work{
					IRecv(part, []int{0}, AnySource), IRecv(part, []int{0}, (g.Rank()+1)%4, 9),
					ISend(part, make([]byte, 1<<20), (g.Rank()+1)%4, 8), IAllReduce(part, []int{1}, Sum),
				}
				if g.Rank() == i%4 {
					part.Abort(reason)
				} else {
					works = append(works, IBarrier(part)) // for which one does not come
				}
				for k, work := range works {
					var abort *AbortError
					err := work.Wait(ctx)
					if err == nil && k == 3 { // all had come to the sum
						continue
					}
					if !errors.As(err, &abort) || abort.Rank != i%4 {
						return fmt.Errorf("work %d got %w, want an AbortError by rank %d", k, err, i%4)
					}
				}
				return errors.Join(part.Close(), Barrier(ctx, g))
			})
			if i == 10 {
				before = runtime.NumGoroutine()
			}
		}
		if now := runtime.NumGoroutine(); now > before+10 {
			t.Errorf("from %d to %d goroutines", before, now)
		}
	})
}

// Several worlds may live in one process, one after another and at once, and leave nothing: TestMain sees to that.
func TestWorldsInOneProcess(t *testing.T) {
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 3 {
				groups, errs := initAll(t, upTo(3), 3, WithStore(NewMemStore()))
				wantWorld(t, groups, errs)
			}
		}()
	}
	for range 4 {
		<-done
	}
}
