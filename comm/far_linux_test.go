package comm

import (
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestFarMachinesGetFewSteps: comm finds out that machines are far away from each other, and then uses algorithms with
// few steps. It does not do so in a group if all that it knows is that every rank of the group is far away from rank 0.
func TestFarMachinesGetFewSteps(t *testing.T) {
	testkit.WithoutRace(t)
	const size = 4
	for name, c := range map[string]struct {
		network string
		want    string // that Explain says
		others  string // that it says of the group of the others than rank 0; empty: does not matter
	}{
		"far":            {network: "far", want: "pairwise", others: "doubling"},
		"near":           {network: "mixed", want: "doubling"},
		"on one machine": {network: "tcp", want: "doubling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newTestAgent(t, c.network, size)
			a.join()
			explains := func(want string, group ...string) {
				a.begun(append([]string{"explain", "all_reduce", "64"}, group...)...)
				for rank, r := range a.results() {
					ways := picked(r.Text)
					if isMember := r.Text != ""; r.Error != "" || isMember && ways != want && !strings.HasSuffix(ways, " "+want) {
						t.Errorf("rank %d says\n%s%s\nwant %s", rank, r.Text, r.Error, want)
					}
				}
			}
			explains(c.want)
			if c.others != "" {
				explains(c.others, "1", "2", "3")
			}
		})
	}
}
