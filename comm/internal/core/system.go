package core

import (
	"math"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cost"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// links returns what messages between members cost, and whether members choose algorithms by that. It is the same on all members. The gap of the
// network is that of the fastest link that a member's machine has to it.
//
// If links have been measured, that was only the way to rank 0. So a group uses them only if it has members near rank 0 and members far away from
// it: those that are all far away may be near each other.
func (g *Group) links() (l cost.Links, byLinks bool) {
	w, near, far := g.World, false, false
	l, byLinks = w.Links, w.ByLinks
	if w.Distances != nil {
		for _, r := range g.Ranks {
			near, far = near || w.Distances[r] == Near, far || w.Distances[r] == Far
		}
		if !near || !far {
			l, byLinks = cost.Default(), false
		}
	}
	if w.Gaps == nil {
		return l, byLinks
	}
	least, most := math.MaxInt, 0
	for _, r := range g.Ranks {
		least, most = min(least, w.Gaps[r]), max(most, w.Gaps[r])
	}
	l.Network.Gap = least
	return l, byLinks || least < most
}

// System returns where ranks are, which are group ranks, and what messages between them cost. It is the same on all members.
func (g *Group) System(ranks []int) cost.System {
	s := cost.System{Chunk: g.World.ChunkSize}
	s.Links, _ = g.links()
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
	if g.World.Gaps != nil {
		s.Gaps = make([]int, len(machines.known))
		for i, r := range ranks {
			gap := &s.Gaps[s.Machines[i]]
			*gap = max(*gap, g.World.Gaps[g.Ranks[r]])
		}
	}
	for _, sets := range cpus {
		s.Processors = append(s.Processors, wait.CountCPUs(sets...))
	}
	return s
}

// SystemOfAll returns System of all members.
func (g *Group) SystemOfAll() cost.System { return g.System(identity(g.Size())) }

// model returns a model by which ranks on so many rails choose among ways; nil: they do not choose by links. It chooses the same on all members.
func (g *Group) model(ways choice.Table, rails int, ranks []int) choice.Model {
	if _, byLinks := g.links(); !byLinks {
		return nil
	}
	return choice.Model(func(op string, _ int) choice.Choice {
		s := g.System(ranks)
		return s.Choice(ways, op, rails)
	}).Once()
}

// Between returns the choices for the stage of a collective that is between machines, on so many rails.
func (g *Group) Between(at plan.Nodes, rails int) plan.Choices {
	c, ways := g.Choose, g.Choose.Table
	if rails > 1 {
		ways = plan.Unjoined(ways)
	}
	ranks := at.OnRails(rails)
	c.Model, c.Chain = g.model(ways, rails, ranks), g.chain(ranks, len(ranks)/rails)
	return c
}

// chain returns the order in which the first size of ranks form a chain; nil: as they are. It is the same on all members.
func (g *Group) chain(ranks []int, size int) []int {
	if g.World.Gaps == nil {
		return nil
	}
	s := g.System(ranks)
	return s.Chain(size)
}

// partSizes returns the least and the most bytes that a rank sends to another machine in one piece of a long vector. They are the same on all
// members. Sending the least takes at least twice as long as the latency and the overheads of a message. Short pieces pay only if stages
// overlap.
func (g *Group) partSizes() (least, most int) {
	w := g.World
	least = w.ChunkSize / 2
	if w.MayOverlap {
		least = w.ChunkSize / 16
	}
	l, byLinks := g.links()
	if n := &l.Network; byLinks && n.Gap > 0 {
		least = max(least, 2*int((n.Latency+2*n.Overhead).Nanoseconds()*1000/int64(n.Gap)))
	}
	least = max(least, 1)
	return least, max(w.ChunkSize/2, least)
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
