package core

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm/wait"
)

// home returns the processor, from 1, of this rank if the ranks on its kernel are spread over the processors that they may use; 0: it is
// alone, or that is not known. The first ranks of all machines come first, since only they may exchange messages.
func (w *WorldConfig) home() uint32 {
	type seat struct{ local, machine, rank int }
	var seats []seat
	machines, ranks, here := numbering{same: machine.Place.SameNetwork}, map[int]int{}, w.Peers[w.Rank].Place
	for r := range w.Peers {
		if p := w.Peers[r].Place; r == w.Rank || p.SameKernel(here) {
			m := machines.number(p)
			seats = append(seats, seat{ranks[m], m, r})
			ranks[m]++
		}
	}
	slices.SortFunc(seats, func(a, b seat) int {
		return slices.Compare([]int{a.local, a.machine}, []int{b.local, b.machine})
	})
	at := slices.IndexFunc(seats, func(s seat) bool { return s.rank == w.Rank })
	cpus := wait.ListCPUs(w.Peers[w.Rank].CPUs)
	if len(seats) < 2 || len(cpus) < 2 {
		return 0
	}
	other := w.Peers[0].PID // other jobs begin with other processors
	return uint32(cpus[(at+other)%len(cpus)]) + 1
}
