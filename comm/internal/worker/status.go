package worker

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strconv"

	"github.com/gorun/gorun/env/progress"
)

const (
	maxStacks  = 1 << 20 // bytes
	leastPaces = 16      // how many times between collectives make a pace
)

// status returns what this process says of itself.
func (p *Process) status(stacks bool) *progress.Status {
	s := &progress.Status{} // of the world in which this rank waits, if there are several
	for _, w := range p.open() {
		if !w.answers || s.Stalled {
			continue
		}
		if of := w.status(); s.Pid == 0 || of.Stalled || of.Operation && !s.Operation {
			s = of
		}
	}
	s.Pid = os.Getpid()
	s.Pace, s.Collectives = p.pace(), p.recentCollectives()
	if !stacks {
		return s
	}
	text := make([]byte, maxStacks)
	s.Stacks = string(text[:runtime.Stack(text, true)])
	for _, g := range p.Groups() {
		flight, _ := json.Marshal(p.flight(g)) // to memory: cannot fail
		s.Flights = append(s.Flights, flight)
	}
	return s
}

// status returns what this rank does in w.
func (w *World) status() *progress.Status {
	report, isBusy, isStalled := w.All.Comm.Status()
	s := &progress.Status{Pid: os.Getpid(), Rank: w.Rank, Operation: isBusy, Stalled: isStalled, Activity: report.Activity.String()}
	for _, wait := range report.Chain {
		s.Waits = append(s.Waits, progress.Wait(wait))
	}
	if report.Suspect != nil {
		s.Suspect = &progress.Suspect{Rank: report.Suspect.Rank, Text: report.Suspect.String()}
	}
	return s
}

// recentCollectives returns what the last collectives of all groups move; nil: there was none.
func (p *Process) recentCollectives() *progress.Collectives {
	var sum progress.Collectives
	for _, g := range p.Groups() {
		if calls, sent, received, over := g.Comm.Recent(); over > 0 {
			sum.PerSecond += float64(calls) / over.Seconds()
			sum.SentPerSecond += float64(sent) / over.Seconds()
			sum.ReceivedPerSecond += float64(received) / over.Seconds()
		}
	}
	if sum.PerSecond == 0 {
		return nil
	}
	return &sum
}

// pace returns the pace of the group with the most collectives; nil: there were too few.
func (p *Process) pace() (most *progress.Pace) {
	for _, g := range p.Groups() {
		between, samples, calls := g.Comm.Pace()
		if samples >= leastPaces && (most == nil || calls > most.Operations) {
			ranks := fnv.New64a()
			_, _ = fmt.Fprint(ranks, g.Ranks) // to a hash: cannot fail
			most = &progress.Pace{Group: strconv.FormatUint(ranks.Sum64(), 16), Operations: calls, Between: between, Samples: samples}
		}
	}
	return most
}
