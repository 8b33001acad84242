package bench

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm"
)

func TestRule(t *testing.T) {
	for _, c := range []struct {
		times [][]float64
		want  string
	}{
		{[][]float64{{1, 2, 9, 9}, {2, 3, 4, 5}, {6, 6, 6, 6}}, "few:20,some"},
		{[][]float64{{1, 2, 9, 9}, {2, 3, 4, 9}, {5, 5, 5, 5}}, "few:20,some:30,many"},
		{[][]float64{{1, 2, 9, 9}, {9, 9, 9, 9}, {2, 3, 4, 5}}, "few:20,many"},
		{[][]float64{{1, 1, 1, 1}, {2, 2, 2, 2}, {2, 2, 2, 2}}, "few"},
		{[][]float64{{2, 2, 2, 2}, {2, 2, 2, 2}, {1, 1, 1, 1}}, "many"},
		{[][]float64{{1, 3, 1, 9}, {2, 2, 2, 2}, {3, 3, 3, 3}}, "few:30,some"}, // one that is slow by chance
	} {
		got := (&timing{ways: []string{"few", "some", "many"}, sizes: []int64{10, 20, 30, 40}, times: c.times}).rule()
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.times, got, c.want)
		}
	}
}

// No other cut of the sizes has less of a product.
func TestEndsAreTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "sizes")
		tm := timing{ways: []string{"few", "some", "many"}, sizes: make([]int64, n)}
		for range tm.ways {
			tm.times = append(tm.times, rapid.SliceOfN(rapid.Float64Range(0.1, 10), n, n).Draw(t, "times"))
		}
		product := func(first, second int) float64 {
			p := 1.0
			for i := range n {
				k := 0
				if i >= first {
					k++
				}
				if i >= second {
					k++
				}
				p *= tm.times[k][i]
			}
			return p
		}
		ends := tm.ends()
		got := product(ends[0], ends[1])
		for first := range n + 1 {
			for second := first; second <= n; second++ {
				if p := product(first, second); p < got*(1-1e-9) {
					t.Fatalf("%v are the ends, but %d and %d are better: %v < %v", ends, first, second, p, got)
				}
			}
		}
	})
}

// What is printed is a tuning that comm takes, for every operation that has a choice.
func TestTuneAndExplain(t *testing.T) {
	var out bytes.Buffer
	var failed atomic.Int32
	inWorld(t, 3, func(ctx context.Context, g *comm.Group) error {
		c := config(Operations()...)
		c.Iterations, c.Warmup, c.Tune = 2, 0, true
		if err := work(ctx, g, &c, "", &out); err != nil {
			return err
		}
		rules := ""
		if g.Rank() == 0 {
			rules = out.String()
		}
		if err := comm.BroadcastObjects(ctx, g, []any{&rules}, 0); err != nil {
			return err
		}
		tuning, err := comm.ParseTuning(rules)
		if err != nil {
			return err
		}
		tuned, err := comm.NewGroup(ctx, g, g.Ranks(), comm.WithTuning(tuning))
		if err != nil {
			return err
		}
		c.Tune, c.Explain, c.Operations = false, true, []string{allReduce}
		if err := work(ctx, tuned, &c, "", &out); err != nil {
			return err
		}
		c.Tune, c.Explain, c.Operations = true, false, []string{barrier}
		if err := work(ctx, g, &c, "", &out); err != nil && strings.HasPrefix(err.Error(), "nothing to tune: comm has only one algorithm for barrier here") {
			failed.Add(1)
		}
		return nil
	})
	if text := out.String(); !strings.Contains(text, "\nall_reduce@3=") || !strings.Contains(text, "(tuned, 3 ranks") || failed.Load() != 3 {
		t.Errorf("%d ranks have nothing to tune; printed:\n%s", failed.Load(), text)
	}
}
