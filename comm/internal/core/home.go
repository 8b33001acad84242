package core

import (
	"cmp"
	"slices"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// home returns this rank's processor, counted from 1, if the ranks on its kernel take the processors in turn. 0: it is alone there, has no
// choice, or the processors are not known. Several machines on one kernel are containers. The first rank of each machine comes first, then
// the second of each: those of one machine may share memory, and then only the first ones send messages.
func (w *WorldConfig) home() uint32 {
	type member struct{ rank, machine, local int } // local: its number on its machine
	var members []member
	me, machines, ranks := w.Peers[w.Rank], numbering{same: machine.Place.SameNetwork}, map[int]int{}
	for r, p := range w.Peers {
		if r == w.Rank || p.SameKernel(me.Place) {
			m := machines.number(p.Place)
			members = append(members, member{r, m, ranks[m]})
			ranks[m]++
		}
	}
	cpus := wait.ListCPUs(me.CPUs)
	if len(members) < 2 || len(cpus) < 2 {
		return 0
	}
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.local, b.local), cmp.Compare(a.machine, b.machine))
	})
	i := slices.IndexFunc(members, func(m member) bool { return m.rank == w.Rank })
	first := w.Peers[0].PID // so that jobs that share the processors begin with different ones
	return uint32(cpus[(first+i)%len(cpus)]) + 1
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
