package core

import (
	"github.com/gorun/gorun/comm/internal/cost"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// System returns where ranks are, which are group ranks, and what messages between them cost. It is the same on all members.
func (g *Group) System(ranks []int) cost.System {
	s := cost.System{Links: g.World.Links, Chunk: g.World.ChunkSize}
	var cpus [][]string // by kernel
	machines, kernels := numbering{same: machine.Place.SameNetwork}, numbering{same: machine.Place.SameKernel}
	for _, r := range ranks {
		p := &g.World.Peers[g.Ranks[r]]
		k := kernels.number(p.Place)
		if k == len(cpus) {
			cpus = append(cpus, nil)
		}
		cpus[k] = append(cpus[k], p.CPUs)
		s.Kernels, s.Machines = append(s.Kernels, k), append(s.Machines, machines.number(p.Place))
	}
	for _, sets := range cpus {
		s.Processors = append(s.Processors, wait.CountCPUs(sets...))
	}
	return s
}

// A numbering numbers places of which some are the same.
type numbering struct {
	same  func(p, other machine.Place) bool
	known []machine.Place
}

func (n *numbering) number(p machine.Place) int {
	for i, other := range n.known {
		if n.same(p, other) {
			return i
		}
	}
	n.known = append(n.known, p)
	return len(n.known) - 1
}
