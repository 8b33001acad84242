package comm

import (
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/fulltest"
)

// TestStreamsOutliveARound: survivors use their connections again. Where a rank is slow they may make one anew, so this counts over rounds.
func TestStreamsOutliveARound(t *testing.T) {
	onNetworks(t, fulltest.Else(networks, []string{"tls", "mixed"}), func(t *testing.T, network string) {
		const size = 4
		rounds := fulltest.Else(8, 2)
		a := newTestAgent(t, network, size)
		a.join()
		used := 0
		for i := range rounds {
			a.all("check")
			before := make([][]string, size)
			for r, w := range a.workers {
				before[r] = sockets(t, w)
			}
			dead := i % size
			a.begun("run", "in place")
			a.lose(dead)
			for rank, r := range a.results() {
				wantDead(t, a.workers[rank], r, "AllReduce", dead)
			}
			a.next(size)
			a.join()
			a.all("check")
			for r, w := range a.workers {
				if r == dead {
					continue
				}
				for _, socket := range sockets(t, w) {
					if slices.Contains(before[r], socket) {
						used++
					}
				}
			}
		}
		// Each of 3 survivors has a connection to the two others, and one to its agent.
		t.Logf("%d sockets of %d outlived a round", used, rounds*3*3)
		if used <= rounds*3+rounds {
			t.Errorf("%d sockets outlived %d rounds", used, rounds)
		}
	})
}

func sockets(t *testing.T, w *testWorker) []string {
	t.Helper()
	w.do("sockets")
	r := w.result()
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	return strings.Fields(r.Text)
}
