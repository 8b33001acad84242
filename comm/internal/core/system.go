package core

import (
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cost"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/plan"
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

// SystemOfAll returns System of all members.
func (g *Group) SystemOfAll() cost.System { return g.System(identity(g.Size())) }

// model returns a model by which ranks on so many rails choose among ways; nil: the world has no links. It chooses the same on all members.
func (g *Group) model(ways choice.Table, rails int, ranks func() []int) choice.Model {
	if !g.World.ByLinks {
		return nil
	}
	return choice.Model(func(op string, _ int) choice.Choice {
		s := g.System(ranks())
		if g.World.FarAway && !s.HasNetwork() {
			return nil
		}
		return s.Choice(ways, op, rails)
	}).Once()
}

// Between returns the choices for the stage of a collective that is between machines, on so many rails.
func (g *Group) Between(at plan.Nodes, rails int) plan.Choices {
	c, ways := g.Choose, g.Choose.Table
	if rails > 1 {
		ways = plan.Unjoined(ways)
	}
	c.Model = g.model(ways, rails, func() []int { return at.OnRails(rails) })
	return c
}

// identity returns the ranks below n.
func identity(n int) []int {
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
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
