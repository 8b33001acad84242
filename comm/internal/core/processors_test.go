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
		want string   // for an all-reduce of 4 KiB
		root string   // for a reduce of 32 KiB
	}{
		"one each":        {[]string{"01", "02", "04"}, "shared", "shared"},
		"all share many":  {[]string{"ff", "ff", "ff"}, "shared", "shared"},
		"too few":         {[]string{"03", "03", "03"}, "flat", "flat"},
		"one is unknown":  {[]string{"ff", "", "ff"}, "flat", "flat"},
		"two ranks":       {[]string{"01", "02"}, "flat", "flat"},
		"two on one":      {[]string{"01", "01"}, "flat", "flat"},
		"nothing is said": {[]string{"", "", ""}, "flat", "flat"},
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
			if got := g.InMemory().Pick("reduce", len(c.cpus), 32<<10); got != c.root {
				t.Errorf("%s: rank %d takes %q for a reduce, want %q", name, r, got, c.root)
			}
		}
	}
	if a, b := shm.Ways.Free("all_reduce"), shm.WaysWithProcessors.Free("all_reduce"); len(a) != len(b) {
		t.Errorf("%v and %v", a, b)
	}
}
