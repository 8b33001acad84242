package main

import (
	"math"
	"slices"
)

// A goal is what comm should reach: a geometric mean of ratios, and a floor for each ratio; 0 is no floor.
type goal struct {
	What  string
	Mean  float64
	Floor float64 // of most cells
	ours  string
	peers []string
	in    func(cell) bool
	floor func(cell) float64 // nil: the same for all
}

var collectives = []string{"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"}

func isCollective(c cell) bool { return slices.Contains(collectives, c.Op) }

var mpis = []string{"Open MPI", "MPICH"}

var goals = []goal{
	{
		What: "collectives, 2 ranks, against the best of Open MPI and MPICH", Mean: 3, Floor: 1.5,
		ours: "comm", peers: mpis, in: func(c cell) bool { return isCollective(c) && c.Ranks == 2 },
		floor: func(c cell) float64 {
			if (c.Op == "broadcast" || c.Op == "reduce") && c.Bytes < 4<<10 { // which nobody waits for
				return 1
			}
			return 1.5
		},
	},
	{
		What: "the same, 4 ranks", Mean: 3, Floor: 1.3,
		ours: "comm", peers: mpis, in: func(c cell) bool { return isCollective(c) && c.Ranks == 4 },
	},
	{
		What: "sendrecv, 2 ranks", Mean: 2, Floor: 1,
		ours: "comm", peers: mpis, in: func(c cell) bool { return c.Op == "sendrecv" && c.Ranks == 2 },
	},
	{
		What: "barrier, 2 ranks", Mean: 2,
		ours: "comm", peers: mpis, in: func(c cell) bool { return c.Op == "barrier" && c.Ranks == 2 },
	},
	{
		What: "collectives on comm.Alloc memory, 256 KiB and up, dirty", Mean: 6, Floor: 3,
		ours: "comm alloc", peers: mpis, in: func(c cell) bool { return isCollective(c) && c.Bytes >= 256<<10 && c.State == "dirty" },
	},
	{
		What: "all_reduce on comm.Alloc memory, 16 MiB and up, 2 ranks, bytes per second against STREAM's triad", Mean: 0.8,
		ours: "comm alloc", peers: []string{triad}, in: func(c cell) bool { return c.Bytes >= 16<<20 && c.Ranks == 2 },
	},
	{
		What: "everything over TCP, against Open MPI over TCP", Mean: 2, Floor: 1.1,
		ours: "comm tcp", peers: []string{"Open MPI tcp"}, in: func(cell) bool { return true },
	},
	{
		What: "everything, against gloo", Mean: 20, Floor: 3,
		ours: "comm", peers: []string{"gloo"}, in: func(cell) bool { return true },
	},
}

// An outcome says how far a goal was reached.
type outcome struct {
	goal
	Cells   int
	Reached float64 `json:",omitempty"`
	Worst   ratio   // relative to its floor
	Below   int     // cells below their floors
}

func (g goal) outcome(s samples) outcome {
	if g.floor == nil {
		g.floor = func(cell) float64 { return g.Floor }
	}
	list := s.ratios(g.ours, g.peers, g.in)
	o := outcome{goal: g, Cells: len(list)}
	if len(list) == 0 {
		return o
	}
	o.Reached = geometricMean(list)
	o.Worst = worst(list, func(c cell) float64 { return max(g.floor(c), math.SmallestNonzeroFloat64) })
	for _, r := range list {
		if r.Value < g.floor(r.cell) {
			o.Below++
		}
	}
	return o
}
