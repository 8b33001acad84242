package core

import (
	"testing"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/machine"
)

// TestInMemory: which algorithms ranks use in memory depends on whether each has a processor, and is the same on all
// ranks of a machine.
func TestInMemory(t *testing.T) {
	for name, c := range map[string]struct {
		cpus []string         // of ranks on this machine
		want choice.Algorithm // for an all-reduce of 4 KiB
		root choice.Algorithm // for a reduce of 32 KiB
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
			if got := g.InMemory().Choose("all_reduce", len(c.cpus), 4<<10); got != c.want {
				t.Errorf("%s: rank %d takes %q, want %q", name, r, got, c.want)
			}
			if got := g.InMemory().Choose("reduce", len(c.cpus), 32<<10); got != c.root {
				t.Errorf("%s: rank %d takes %q for a reduce, want %q", name, r, got, c.root)
			}
		}
	}
}

// TestChunkSize: chunks are short between machines where each rank has a processor, unless machines are far away from
// each other.
func TestChunkSize(t *testing.T) {
	for name, c := range map[string]struct {
		machines  string   // of ranks, a letter for each
		cpus      []string // of ranks
		ranks     []int    // of the group
		distances []Distance
		most      int
		want      int
	}{
		"one each":          {"abb", []string{"01", "01", "02"}, []int{0, 1, 2}, nil, choice.ChunkSize, choice.Network.OwnChunk},
		"on one machine":    {"abb", []string{"01", "01", "02"}, []int{2, 1}, nil, choice.ChunkSize, choice.ChunkSize},
		"two on one":        {"abb", []string{"01", "02", "02"}, []int{0, 1}, nil, choice.ChunkSize, choice.ChunkSize},
		"one is unknown":    {"abb", []string{"", "01", "02"}, []int{0, 1, 2}, nil, choice.ChunkSize, choice.ChunkSize},
		"far":               {"ab", []string{"01", "01"}, []int{0, 1}, []Distance{Near, Far}, choice.ChunkSize, choice.ChunkSize},
		"short ones anyway": {"ab", []string{"01", "01"}, []int{0, 1}, nil, 500, 500},
	} {
		peers := make([]Peer, len(c.machines))
		for r := range peers {
			peers[r] = Peer{CPUs: c.cpus[r], Place: machine.Place{Kernel: c.machines[r : r+1], Network: "here"}}
		}
		w := &World{WorldConfig: WorldConfig{Peers: peers, Distances: c.distances, ChunkSize: c.most}}
		w.HaveProcessors = w.allHaveProcessors(1)
		if got := (&Group{World: w, Ranks: c.ranks}).chunkSize(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
