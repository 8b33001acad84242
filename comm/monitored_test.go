package comm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMonitoredBarrierWithAll(t *testing.T) {
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		return errors.Join(MonitoredBarrier(ctx, g), AllReduce(ctx, g, []int{1}, Sum), MonitoredBarrier(ctx, g))
	})
}

// Cases 37 and 38 of torch's suite, and that rank 0 or many do not come.
func TestMonitoredBarrierNamesWhoIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		size            int
		absent, stopped []int
		first           string // whom the error names first, and how
	}{
		"rank 1":         {2, []int{1}, nil, "missing rank 1 (group rank 0, "},
		"rank 0":         {3, []int{0}, nil, "missing rank 0 (group rank 2, "},
		"several":        {8, []int{2, 3, 7}, nil, "missing rank 2 (group rank 5, "},
		"all but one":    {5, []int{0, 1, 2, 4}, nil, "missing rank 0 (group rank 4, "},
		"a stopped one":  {4, nil, []int{2}, "missing rank 2 (group rank 1, "},
		"of either kind": {9, []int{0, 5}, []int{1, 8}, "missing rank 0 (group rank 8, "},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.size, func(t *testing.T, w *testWorld) {
				const limit = 2 * time.Second
				missing := slices.Sorted(slices.Values(append(slices.Clone(c.absent), c.stopped...)))
				for _, r := range c.stopped {
					defer w.mortal[r].Kill()
				}
				start := time.Now()
				for r, err := range w.results(func(ctx context.Context, g *Group) error {
					reversed := slices.Clone(g.core.Ranks)
					slices.Reverse(reversed)
					g, err := NewGroup(ctx, g, reversed, WithTimeout(limit))
					if err != nil {
						return err
					}
					time.Sleep(time.Second) // until all have made it
					switch {
					case slices.Contains(c.stopped, g.world.Rank):
						w.mortal[g.world.Rank].Stop()
						return nil
					case slices.Contains(c.absent, g.world.Rank):
						return nil
					}
					err = MonitoredBarrier(ctx, g)
					if again := Barrier(ctx, g); again == nil {
						t.Error("the group goes on")
					}
					return err
				}) {
					var e *MissingRanksError
					switch {
					case slices.Contains(missing, r):
					case !errors.As(err, &e) || !slices.Equal(e.Missing, missing) || !errors.Is(err, ErrTimeout):
						t.Errorf("rank %d got %v, want a MissingRanksError with %v", r, err, missing)
					case !strings.HasPrefix(err.Error(), "comm: MonitoredBarrier #1: ") || !strings.Contains(err.Error(), c.first):
						t.Errorf("rank %d got %v, want that it says %q", r, err, c.first)
					}
				}
				if d := time.Since(start) - time.Second; d > limit {
					t.Errorf("took %v, longer than the timeout of %v", d, limit)
				}
			})
		})
	}
}

func TestMonitoredBarrierWithinTheContextsDeadline(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *testWorld) {
		start := time.Now()
		errs := w.results(func(ctx context.Context, g *Group) error {
			if g.Rank() == 1 {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return MonitoredBarrier(ctx, g)
		})
		for _, r := range []int{0, 2} {
			var e *MissingRanksError
			if !errors.As(errs[r], &e) || !slices.Equal(e.Missing, []int{1}) {
				t.Errorf("rank %d got %v, want a MissingRanksError with rank 1", r, errs[r])
			}
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

// Those who come last are not missing, as long as they come.
func TestMonitoredBarrierWaitsForWhoIsLate(t *testing.T) {
	inBubble(t, 4, func(t *testing.T, w *testWorld) {
		w.run(func(ctx context.Context, g *Group) error {
			time.Sleep(time.Duration(g.Rank()) * 19 * time.Second) // the last 57 s after the first, whose time is a minute
			return errors.Join(MonitoredBarrier(ctx, g), Barrier(ctx, g))
		})
	})
}

// The one whose time is up first tells all, also the others' missing.
func TestMonitoredBarrierWithRanksThatComeApart(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, w *testWorld) {
		start := time.Now()
		for r, err := range w.results(func(ctx context.Context, g *Group) error {
			if g.Rank() == 4 {
				return nil
			}
			time.Sleep(time.Duration(3-g.Rank()) * time.Second)
			return MonitoredBarrier(ctx, g)
		}) {
			var e *MissingRanksError
			if r != 4 && (!errors.As(err, &e) || !slices.Equal(e.Missing, []int{4})) {
				t.Errorf("rank %d got %v, want a MissingRanksError with rank 4", r, err)
			}
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("took %v", d)
		}
	})
}
