package wait

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// If there are more ranks than processors, a rank that waits must let the right ones run. Each rank publishes its processor. A rank that
// waits yields at once if another rank on its processor is behind it: only then can that rank continue. If no rank there is behind, a
// rank on another processor is working on what it waits for, so it keeps spinning. So each rank runs once in an operation. Most of the
// cost of an operation is in these switches.
//
// A [Detector] would not do here. If somebody computes on the processor, it says not to yield for a while, also not to a rank that could
// continue at once.
//
// A kernel takes a tenth of a second to spread processes that never sleep over its processors. So ranks do it themselves. They do so, too,
// if there are enough processors for all ranks, but others use them as well: then a kernel may put two ranks on one.

const spinsForOtherCPU = 50 // polls while another processor works on what a rank waits for

// SharesCPU reports whether this rank has to let other ranks run on its processor. Goroutines of one process need no help for that.
func (w *Waiter) SharesCPU() bool { return w.Oversubscribed && !w.SameProcess }

// Yield yields a few times until r's clock has reached target, and returns what the clock says.
func (w *Waiter) Yield(r int, target uint64) uint64 {
	for range firstYields {
		if now := w.Spin(r, target); cpu.Reached(now, target) {
			return now
		}
		w.yieldCPU()
	}
	return cpu.Load(w.clocks[r])
}

// spinsFor returns how often this rank polls r's clock before it yields.
func (w *Waiter) spinsFor(r int) int {
	if !w.SharesCPU() {
		return spinsPerYield
	}
	mine := cpu.Load(w.clocks[w.me])
	for i, other := range w.states {
		if i != w.me && cpu.Load32(&other.CPU) == w.cpu && (i == r || !cpu.Reached(cpu.Load(w.clocks[i]), mine)) {
			return 1
		}
	}
	return spinsForOtherCPU
}

// yieldCPU lets others run on this processor. From time to time it finds out which processor that is, and moves to another one that has
// fewer ranks.
func (w *Waiter) yieldCPU() {
	YieldThread()
	if w.yields++; w.yields%yieldsPerLook != 1 {
		return
	}
	w.publishCPU()
	w.cpus = w.cpus[:0]
	for _, other := range w.states {
		w.cpus = append(w.cpus, cpu.Load32(&other.CPU))
	}
	if isLastOfSeveral(w.cpus, w.me) {
		moveTo(func(to uint32) bool { return hasFewer(w.cpus, w.me, to) })
	}
}

// publishCPU lets the other ranks know on which processor this one runs.
func (w *Waiter) publishCPU() {
	if now := currentCPU(); now != w.cpu {
		w.cpu = now
		cpu.Store32(&w.states[w.me].CPU, now)
	}
}

// isOnCPUOf reports whether this rank runs on the processor on which r was when it had to wait for long. Goroutines of one process need
// not know.
func (w *Waiter) isOnCPUOf(r int) bool {
	if w.SameProcess {
		return false
	}
	w.publishCPU()
	return w.cpu != 0 && cpu.Load32(&w.states[r].CPU) == w.cpu
}

// isLastOfSeveral reports whether rank me is the last of several ranks on its processor, and so the one to move. cpus has the processor
// of every rank.
func isLastOfSeveral(cpus []uint32, me int) bool {
	here := cpus[me]
	return here != 0 && slices.Contains(cpus[:me], here) && !slices.Contains(cpus[me+1:], here)
}

// hasFewer reports whether processor to has fewer ranks than rank me would leave behind on its own.
func hasFewer(cpus []uint32, me int, to uint32) bool {
	here, there := 0, 0
	for _, on := range cpus {
		switch on {
		case cpus[me]:
			here++
		case to:
			there++
		}
	}
	return to != cpus[me] && there < here-1
}
