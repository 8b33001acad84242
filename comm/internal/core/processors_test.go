package core

import (
	"testing"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm"
)

// TestInMemory: which algorithms ranks use in memory depends on whether each has a processor, and is the same on all ranks of a machine.
func TestInMemory(t *testing.T) {
	for name, c := range map[string]struct {
		cpus []string // of ranks on this machine
		want string   // for 4 KiB
	}{
		"one each":        {[]string{"01", "02", "04"}, "shared"},
		"all share many":  {[]string{"ff", "ff", "ff"}, "shared"},
		"too few":         {[]string{"03", "03", "03"}, "flat"},
		"one is unknown":  {[]string{"ff", "", "ff"}, "flat"},
		"two ranks":       {[]string{"01", "02"}, "flat"},
		"two on one":      {[]string{"01", "01"}, "flat"},
		"nothing is said": {[]string{"", "", ""}, "flat"},
	} {
		peers := []Peer{{CPUs: "01", Place: machine.Place{Kernel: "other"}}}
		for _, cpus := range c.cpus {
			peers = append(peers, Peer{CPUs: cpus, Place: machine.Place{Kernel: "this"}})
		}
		for r := 1; r < len(peers); r++ {
			g := &Group{World: &World{WorldConfig: WorldConfig{Rank: r, Peers: peers}}}
			if got := g.InMemory().Pick("all_reduce", len(c.cpus), 4<<10); got != c.want {
				t.Errorf("%s: rank %d takes %q, want %q", name, r, got, c.want)
			}
		}
	}
	if a, b := shm.Ways.Free("all_reduce"), shm.WaysWithProcessors.Free("all_reduce"); len(a) != len(b) {
		t.Errorf("%v and %v", a, b)
	}
}
