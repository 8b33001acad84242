// Package cost predicts how long ranks take to carry out their plans: it simulates them. It has no formula for any algorithm.
//
// The model is LogGOPS. A message costs a processor time at both ends, an overhead and more for every byte; it takes a latency; and the
// wire is busy for every byte. Alexandrov, Ionescu, Schauser and Scheiman, "LogGP: Incorporating Long Messages into the LogP Model", 1995;
// Hoefler, Schneider and Lumsdaine, "LogGOPSim: Simulating Large-Scale Applications in the LogGOPS Model", 2010. If only the latency a and
// the gap b are not zero, a message of n bytes takes a + nb, the model of Hockney, "The communication challenge for MPP: Intel Paragon and
// Meiko CS-2", 1994. Beyond LogGOPS, ranks of a machine share its processors and its link to the network, and who sleeps has to wake up.
//
// Ranks do what package pipeline does: messages travel in chunks, a rank sends a chunk as soon as its bytes are final, and merges
// chunks in the order of its plan. There are no limits on what is under way.
//
// All times are integers, so every rank predicts the same.
package cost

import (
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/plan"
)

const (
	// mostMessages is the most chunks that are simulated.
	mostMessages = 1 << 18
	// mostSteps is how many steps ahead a rank looks for chunks to send, as in package pipeline.
	mostSteps = 8
)

// A System is where ranks are, and what messages between them cost.
type System struct {
	Links
	Machines   []int // by rank; ranks of a machine share its link to the network
	Gaps       []int // of the links of machines, as Link.Gap; nil: all have that of Network
	Kernels    []int // by rank; ranks of a kernel share its processors
	Processors []int // by kernel; 0: one for each rank
	Chunk      int   // how many bytes of a message travel at once
}

// gap returns the gap of a machine's link to the network.
func (s *System) gap(machine int) int {
	if s.Gaps == nil {
		return s.Network.Gap
	}
	return s.Gaps[machine]
}

// Chain returns the chain of the first size ranks.
func (s *System) Chain(size int) plan.Chain {
	if s.Gaps == nil || slices.Min(s.Gaps) == slices.Max(s.Gaps) {
		return plan.Chain{}
	}
	slowest := moment(slices.Max(s.Gaps))
	return plan.Chain{
		Order:        plan.SlowestLast(s.Machines[:size], s.Gaps),
		MessageCost:  max(int(2*of(s.Network.Overhead)/slowest), leastMessage),
		LeastMessage: max(int(of(s.Network.Latency)/slowest), leastMessage),
	}
}

// leastMessage keeps messages on very slow links from becoming very short.
const leastMessage = 1 << 10

// Apart returns a system of so many ranks, each on a machine of its own.
func Apart(l Links, ranks, chunk int) System {
	s := System{Links: l, Processors: make([]int, ranks), Chunk: chunk}
	for r := range ranks {
		s.Machines, s.Kernels = append(s.Machines, r), append(s.Kernels, r)
	}
	return s
}

// Time returns how long the ranks of s take to carry out plans, whose elements are bytes. inPlace says that they send from the vector that
// they receive into. Time reports false if too many messages would have to be simulated, or a rank waits for a message that nobody sends.
func (s *System) Time(plans []plan.Plan, inPlace bool) (time.Duration, bool) {
	return s.timeUpTo(mostMessages, plans, inPlace)
}

// timeUpTo is Time for at most so many chunks.
func (s *System) timeUpTo(most int, plans []plan.Plan, inPlace bool) (time.Duration, bool) {
	messages := 0
	for _, p := range plans {
		for _, step := range p {
			messages += 1 + step.Send.Len()/s.Chunk + step.Recv.Len()/s.Chunk
		}
	}
	if messages > most || len(plans) != len(s.Machines) {
		return 0, false
	}
	return newSimulation(s, plans, inPlace).run()
}

// HasNetwork reports whether some ranks are on different machines, and HasMachine whether some are on the same one.
func (s *System) HasNetwork() bool { return len(s.Machines) > 0 && slices.Max(s.Machines) > 0 }

// HasMachine is explained at HasNetwork.
func (s *System) HasMachine() bool {
	seen := map[int]bool{}
	for _, m := range s.Machines {
		seen[m] = true
	}
	return len(seen) < len(s.Machines)
}

func (s *System) link(from, to int) *Link {
	if s.Machines[from] == s.Machines[to] {
		return &s.Machine
	}
	return &s.Network
}

// busiestLink returns how long the bytes of plans occupy the busiest link, in the direction that takes longer.
func (s *System) busiestLink(plans []plan.Plan) moment {
	out, in := make([]int, len(s.Machines)), make([]int, len(s.Machines)) // bytes, by machine
	for r, p := range plans {
		for i := range p {
			if to := p[i].To; to != plan.None && s.Machines[to] != s.Machines[r] {
				out[s.Machines[r]] += p[i].Send.Len()
				in[s.Machines[to]] += p[i].Send.Len()
			}
		}
	}
	longest := moment(0)
	for m := range slices.Max(s.Machines) + 1 {
		longest = max(longest, ofBytes(max(out[m], in[m]), s.gap(m)))
	}
	return longest
}
