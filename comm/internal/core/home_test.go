package core

import (
	"slices"
	"testing"

	"github.com/gorun/gorun/comm/internal/machine"
)

// TestHome: ranks on one kernel are spread over its processors, and those of different machines first.
func TestHome(t *testing.T) {
	rank := func(network, cpus string) Peer {
		return Peer{CPUs: cpus, PID: 7, Place: machine.Place{Kernel: "this", Network: network}}
	}
	for name, c := range map[string]struct {
		peers []Peer
		want  []uint32
	}{
		"one rank":               {[]Peer{rank("a", "0f")}, []uint32{0}},
		"one processor":          {[]Peer{rank("a", "01"), rank("b", "01")}, []uint32{0, 0}},
		"bound":                  {[]Peer{rank("a", "01"), rank("a", "02")}, []uint32{0, 0}},
		"not known":              {[]Peer{rank("a", ""), rank("a", "")}, []uint32{0, 0}},
		"machines":               {[]Peer{rank("a", "03"), rank("b", "03"), rank("c", "03"), rank("d", "03")}, []uint32{2, 1, 2, 1}},
		"two ranks on each":      {[]Peer{rank("a", "03"), rank("a", "03"), rank("b", "03"), rank("b", "03")}, []uint32{2, 2, 1, 1}},
		"as many as processors":  {[]Peer{rank("a", "0f"), rank("a", "0f"), rank("a", "0f"), rank("a", "0f")}, []uint32{4, 1, 2, 3}},
		"the last of many":       {[]Peer{rank("a", "0003"), rank("b", "0003")}, []uint32{10, 9}},
		"others on other kernel": {[]Peer{{PID: 7, CPUs: "03", Place: machine.Place{Kernel: "other"}}, rank("a", "03")}, []uint32{0, 0}},
	} {
		var got []uint32
		for r := range c.peers {
			got = append(got, (&WorldConfig{Rank: r, Peers: c.peers}).home())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
