package comm

import (
	"strings"
	"testing"
)

// TestFarAway: comm finds out that machines are far away from each other, and then uses algorithms with few steps. Links that the user has set
// overrule that.
func TestFarAway(t *testing.T) {
	const size = 4
	for name, c := range map[string]struct {
		network, environ string
		want             string // that Explain says
	}{
		"far":             {"far", "", "pairwise"},
		"far, with links": {"far", "GORUN_COMM_LINKS=" + linked["narrow, scattered"], "bidirectional"},
		"near":            {"mixed", "", "doubling"},
		"on one machine":  {"tcp", "", "doubling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newTestAgent(t, c.network, size, c.environ)
			a.join()
			for _, w := range a.workers {
				w.do("explain", "all_reduce", "64")
				if text := w.result().Text; picked(text) != c.want && !strings.HasSuffix(picked(text), " "+c.want) {
					t.Errorf("rank %d says\n%swant %s", w.rank, text, c.want)
				}
			}
		})
	}
}
