package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
)

// A rank fails in the first call of a world, before ranks have connected. Every rank that fails because of it ends at
// once. One rank makes its call when all the others have ended. It, too, says what has happened first, and not that
// somebody else has gone.
func TestWhoComesLateNamesTheFirstFailure(t *testing.T) {
	const size = 6
	call := func(ctx context.Context, g *Group, n int) error { return AllReduce(ctx, g, make([]float32, n), Sum) }
	failures := map[string]struct {
		late []int // who may be late, so that the others still find the failure of the first or last rank
		fail func(ctx context.Context, w *testWorld, rank int) error
		is   func(err error, rank int) bool
	}{
		"differs": {
			[]int{size - 1},
			func(ctx context.Context, w *testWorld, rank int) error { return call(ctx, w.groups[rank], 999) },
			func(err error, _ int) bool { _, ok := errors.AsType[*MismatchError](err); return ok },
		},
		"dies": {
			[]int{size - 1},
			func(_ context.Context, w *testWorld, rank int) error { w.mortal[rank].Kill(); return nil },
			func(err error, rank int) bool { p, ok := errors.AsType[*PeerError](err); return ok && p.Rank == rank },
		},
		"gives up": {
			[]int{0, size - 1},
			func(_ context.Context, w *testWorld, rank int) error {
				w.groups[rank].Abort(errors.New("enough"))
				return nil
			},
			func(err error, rank int) bool { a, ok := errors.AsType[*AbortError](err); return ok && a.Rank == rank },
		},
	}
	ends := map[string]func(w *testWorld, rank int) error{
		"close": func(w *testWorld, rank int) error { return w.groups[rank].Close() },
		"die": func(w *testWorld, rank int) error {
			w.groups[rank].core.Comm.AwaitNotified(10 * time.Second) // a call gives up earlier, on a busy machine before the others know
			w.mortal[rank].Kill()
			return nil
		},
	}
	// Where ranks do not know whether others are dead, as here, they wait that long for news.
	cfg := testConfig()
	cfg.NotifyTimeout = core.NotifyTimeout
	for _, name := range []string{"tcp", "shm"} {
		for what, failure := range failures {
			for how, end := range ends {
				for _, late := range failure.late {
					first := size - 1 - late
					t.Run(fmt.Sprintf("%s/rank %d %s, others %s, rank %d is late", name, first, what, how, late), func(t *testing.T) {
						transport, machines := name, machinesOf(name, size)
						if len(machines) > 0 {
							transport = "mem"
						}
						w := newConfiguredWorld(t, cfg, transports[transport](t, size), machines)
						defer w.close()
						var ended sync.WaitGroup
						ended.Add(size - 1)
						for rank, err := range w.results(func(ctx context.Context, g *Group) error {
							if g.Rank() == late {
								ended.Wait()
								return call(ctx, g, 1000)
							}
							defer ended.Done()
							if g.Rank() == first {
								return errors.Join(failure.fail(ctx, w, first), end(w, first))
							}
							return errors.Join(call(ctx, g, 1000), end(w, g.Rank()))
						}) {
							if rank != first && !failure.is(err, first) {
								t.Errorf("rank %d: got %v", rank, err)
							}
						}
					})
				}
			}
		}
	}
}
