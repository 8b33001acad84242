package core

import (
	"cmp"
	"slices"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cost"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// links returns what messages between members cost, the gaps of the links of members' machines, by group rank, and whether members choose algorithms
// by that. They do if gaps differ. It is the same on all members. The gap of the network is the least of gaps. gaps is nil if all are the same.
//
// If a latency has been measured, that was only of the way to rank 0. So a group uses it only if it has members near rank 0 and members far away
// from it: those that are all far away may be near each other.
func (g *Group) links() (l cost.Links, gaps []int, byLinks bool) {
	w, near, far := g.World, false, false
	l, byLinks = w.Links, w.ByLinks
	if w.Distances != nil {
		for _, r := range g.Ranks {
			near, far = near || w.Distances[r] == Near, far || w.Distances[r] == Far
		}
		if near && far {
			l, byLinks = w.FarLinks, true
		}
	}
	if w.Gaps == nil {
		return l, nil, byLinks
	}
	for _, r := range g.Ranks {
		gaps = append(gaps, cmp.Or(w.Gaps[r], l.Network.Gap))
	}
	if l.Network.Gap = slices.Min(gaps); l.Network.Gap == slices.Max(gaps) {
		return l, nil, byLinks
	}
	return l, gaps, true
}

// System returns where ranks are, which are group ranks, and what messages between them cost. It is the same on all members.
func (g *Group) System(ranks []int) cost.System {
	s := cost.System{Chunk: g.World.ChunkSize} // with shorter ones, it would take longer to simulate
	var gaps []int
	s.Links, gaps, _ = g.links()
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
	if gaps != nil {
		s.Gaps = make([]int, len(machines.known))
		for i, r := range ranks {
			s.Gaps[s.Machines[i]] = gaps[r]
		}
	}
	for _, sets := range cpus {
		s.Processors = append(s.Processors, wait.CountCPUs(sets...))
	}
	return s
}

// SystemOfAll returns System of all members.
func (g *Group) SystemOfAll() cost.System { return g.System(identity(g.Size())) }

// forLinks returns c with what depends on links: the model by which ranks on so many rails choose among ways, if they choose by links, and their
// chain. It is the same on all members.
func (g *Group) forLinks(c plan.Choices, ways choice.Table, rails int, ranks []int) plan.Choices {
	_, gaps, byLinks := g.links()
	c.Model, c.Chain = nil, plan.Chain{}
	if gaps != nil {
		s := g.System(ranks)
		c.Chain = s.Chain(len(ranks) / rails)
	}
	if byLinks {
		c.Model = choice.Model(func(op string, _ int) choice.Choice {
			s := g.System(ranks)
			return s.Choice(ways, op, rails)
		}).Once()
	}
	return c
}

// Between returns the choices for the stage of a collective that is between machines, on so many rails.
func (g *Group) Between(at plan.Nodes, rails int) plan.Choices {
	ways := g.Choose.Table
	if rails > 1 {
		ways = plan.Unjoined(ways)
	}
	return g.forLinks(g.Choose, ways, rails, at.OnRails(rails))
}

// chunkSize returns how many bytes of a message travel at once. It is the same on all members. Short chunks would slow down connections that carry
// many bytes in a round trip.
func (g *Group) chunkSize() int {
	w := g.World
	l, _, _ := g.links()
	inRoundTrip := 2 * l.Network.Latency.Nanoseconds() * 1000 / int64(max(l.Network.Gap, 1))
	if !w.needNetwork(g.Ranks) || !w.HaveProcessors || w.Distances != nil || inRoundTrip > plan.ChunkSize {
		return w.ChunkSize
	}
	return min(w.ChunkSize, plan.NetworkChunkSize)
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
	l, _, byLinks := g.links()
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
