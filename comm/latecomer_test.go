package comm

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
)

// Rank 0 fails in the first call of a world, before ranks have connected. Every rank that fails because of it ends at once. The last rank makes
// its call when all the others have ended. It, too, says what rank 0 has done, and not that somebody else has gone.
func TestWhoComesLateNamesTheFirstFailure(t *testing.T) {
	const size, late = 6, 5
	call := func(ctx context.Context, g *Group, n int) error { return AllReduce(ctx, g, make([]float32, n), Sum) }
	firsts := map[string]struct {
		how  func(ctx context.Context, w *testWorld) error // what rank 0 does
		want string
	}{
		"differs": {
			func(ctx context.Context, w *testWorld) error { return call(ctx, w.groups[0], 999) },
			"calls do not match: rank 0 AllReduce(float32 × 999, Sum)",
		},
		"dies":     {func(_ context.Context, w *testWorld) error { w.mortal[0].Kill(); return nil }, "rank 0 "},
		"gives up": {func(_ context.Context, w *testWorld) error { w.groups[0].Abort(errors.New("enough")); return nil }, "rank 0 aborted the group: enough"},
	}
	ends := map[string]func(w *testWorld, rank int) error{
		"close": func(w *testWorld, rank int) error { return w.groups[rank].Close() },
		"die":   func(w *testWorld, rank int) error { w.mortal[rank].Kill(); return nil },
	}
	cfg := config{Config: bootstrap.Config{Timeout: time.Minute}, notifyTimeout: core.NotifyTimeout}
	for transport, placement := range map[string]string{"mem": "", "tcp": "", "shm": "shm", "mixed": "mixed"} {
		for what, first := range firsts {
			for how, end := range ends {
				t.Run(transport+"/rank 0 "+what+", the others "+how, func(t *testing.T) {
					over := transport
					if placement != "" {
						over = "mem"
					}
					w := newConfiguredWorld(t, cfg, transports[over](t, size), machinesOf(placement, size))
					defer w.close()
					var ended sync.WaitGroup
					ended.Add(size - 1)
					for rank, err := range w.results(func(ctx context.Context, g *Group) error {
						switch g.Rank() {
						case late:
							ended.Wait()
							return call(ctx, g, 1000)
						case 0:
							defer ended.Done()
							return errors.Join(first.how(ctx, w), end(w, 0))
						default:
							defer ended.Done()
							return errors.Join(call(ctx, g, 1000), end(w, g.Rank()))
						}
					}) {
						if rank > 0 && (err == nil || !strings.Contains(err.Error(), first.want)) {
							t.Errorf("rank %d: got %v, want %s", rank, err, first.want)
						}
					}
				})
			}
		}
	}
}
