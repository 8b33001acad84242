package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gorun/gorun/env/progress"
)

// A member is what is known of one worker.
type member struct {
	rank   int
	idle   time.Duration // without progress; 0: it has never reported any, or has ended
	status *progress.Status
	silent bool  // it answers questions, as a rule, and has not now
	place  place // if it does not use package comm, and is late
}

// isPlain reports whether it does not say for whom it waits: it does not use package comm.
func (m *member) isPlain() bool { return m.status == nil && !m.silent }

// waits reports whether the worker waits for another one.
func (m *member) waits() bool {
	return m.status != nil && len(m.status.Waits) > 0
}

// isCircle reports whether it waits in a circle of ranks.
func (m *member) isCircle() bool { return m.waits() && m.status.Suspect == nil }

const (
	stalledFactor = 2  // times the timeout, for a worker that waits and does not know for whom: it, or another node, may be about to find out
	movingFactor  = 10 // times the timeout, for a worker in an operation that does not wait: it may be moving many bytes
)

// A verdict is about the worker at index, which hangs, and so holds up the others. If tied is not nil, it may be any of these ranks.
type verdict struct {
	index int
	tied  []int
}

// suspect finds the worker that hangs; ok is false if there is none on this node. others says that the job has workers that are not
// watched here: on other nodes, or since they report nothing.
func suspect(members []member, timeout time.Duration, others bool) (v verdict, ok bool) {
	var late []int // by index, of those that are plain
	soon := false  // others will be
	index := -1
	for i := range members {
		m := &members[i]
		soon = soon || m.isPlain() && m.idle >= timeout/2 && m.idle < timeout
		limit := timeout
		switch {
		case m.status == nil:
		case m.status.Stalled:
			limit *= stalledFactor
		case m.status.Operation:
			limit *= movingFactor
		}
		if m.idle < limit || m.waits() {
			continue
		}
		if m.isPlain() {
			late = append(late, i)
		}
		if index < 0 || compare(members, i, index) < 0 {
			index = i
		}
	}
	switch {
	case index < 0:
		index = lowestInCircle(members, timeout)
	case members[index].isPlain() && len(waitersOf(members, members[index].rank)) == 0:
		if soon && members[index].idle < stalledFactor*timeout {
			return v, false
		}
		return suspectPlain(members, late, timeout, others)
	}
	return verdict{index: index}, index >= 0
}

// suspectPlain finds the worker that hangs among those, late, that do not say for whom they wait. When they have stopped says nothing: in a
// step that all ranks take together, all stop together. Where they are does. If that leaves it open, other nodes get time to find the worker.
func suspectPlain(members []member, late []int, timeout time.Duration, others bool) (v verdict, ok bool) {
	var places []place
	for _, i := range late {
		places = append(places, members[i].place)
	}
	odd, certain := oddOneOut(places)
	if len(late) == 1 { // it hangs, unless it waits for one of the others
		odd, certain = 0, places[0].does == idles
	}
	longest := slices.MaxFunc(late, func(a, b int) int { return cmp.Compare(members[a].idle, members[b].idle) })
	switch {
	case others && !certain && members[longest].idle < stalledFactor*timeout:
		return v, false
	case odd >= 0 && (certain || !others || len(late) > 1):
		return verdict{index: late[odd]}, true
	}
	v.index = slices.Min(late)
	for _, i := range late {
		v.tied = append(v.tied, members[i].rank)
	}
	return v, true
}

// compare says which of two workers is more likely to hold up the others: the one that more of them name, or else one that would say if it
// waited, or else the one that made progress longest ago.
func compare(members []member, a, b int) int {
	plain := func(i int) int {
		if members[i].isPlain() {
			return 1
		}
		return 0
	}
	return cmp.Or(
		-cmp.Compare(len(waitersOf(members, members[a].rank)), len(waitersOf(members, members[b].rank))),
		plain(a)-plain(b),
		-cmp.Compare(members[a].idle, members[b].idle),
		cmp.Compare(members[a].rank, members[b].rank))
}

// lowestInCircle looks for ranks that wait for each other in a circle, and make no progress as far as they are on this node. It returns the
// index of the lowest of these ranks; -1: there is no such circle, or that rank is on another node.
func lowestInCircle(members []member, timeout time.Duration) int {
	for i := range members {
		if !members[i].isCircle() {
			continue
		}
		circle := members[i].status.Waits
		low := slices.MinFunc(circle, func(a, b progress.Wait) int { return a.Rank - b.Rank }).Rank
		stuck := !slices.ContainsFunc(members, func(m member) bool {
			return m.idle < timeout && slices.ContainsFunc(circle, func(w progress.Wait) bool { return w.Rank == m.rank })
		})
		if at := slices.IndexFunc(members, func(m member) bool { return m.rank == low }); stuck && at >= 0 {
			return at
		}
	}
	return -1
}

// circleOf returns the waits of the circle that a rank waits in, its own first; nil: no worker knows of one. That rank may be the last to
// learn of it.
func circleOf(members []member, rank int) []progress.Wait {
	for i := range members {
		if !members[i].isCircle() {
			continue
		}
		circle := members[i].status.Waits
		if at := slices.IndexFunc(circle, func(w progress.Wait) bool { return w.Rank == rank }); at >= 0 {
			return slices.Concat(circle[at:], circle[:at])
		}
	}
	return nil
}

// waitersOf returns the indexes of the workers that wait for a rank, directly or through other ranks.
func waitersOf(members []member, rank int) (list []int) {
	for i := range members {
		s := members[i].status
		if s == nil || members[i].rank == rank {
			continue
		}
		if s.Suspect != nil && s.Suspect.Rank == rank || len(s.Waits) > 0 && s.Waits[len(s.Waits)-1].For == rank {
			list = append(list, i)
		}
	}
	return list
}

const maxNamed = 8 // ranks in a line

// because says why it is the worker of a verdict that hangs, as the end of a sentence; empty: nobody is known to wait for it.
func because(members []member, v verdict) string {
	m := &members[v.index]
	if v.tied != nil {
		return undecided(v.tied)
	}
	if circle := circleOf(members, m.rank); circle != nil {
		var parts []string
		for _, w := range circle[:min(len(circle), maxNamed)] {
			parts = append(parts, fmt.Sprintf("rank %d waits for rank %d in %s", w.Rank, w.For, w.In))
		}
		return "deadlock: " + strings.Join(parts, ", ")
	}
	waiters := waitersOf(members, m.rank)
	switch {
	case len(waiters) == 0 && m.silent:
		return "it does not answer gorun"
	case len(waiters) == 0:
		return ""
	}
	slices.SortFunc(waiters, func(a, b int) int { return members[a].rank - members[b].rank })
	in := members[waiters[0]].status.Waits[0].In
	if len(waiters) == 1 {
		return fmt.Sprintf("rank %d waits for it in %s", members[waiters[0]].rank, in)
	}
	var ranks []int
	for _, i := range waiters {
		ranks = append(ranks, members[i].rank)
	}
	return fmt.Sprintf("%s wait for it in %s", listed(ranks), in)
}

// undecided says that any of these ranks may be the one that hangs.
func undecided(ranks []int) string {
	if len(ranks) == 1 {
		return "it may wait for a rank of another node, or for one that reports no progress"
	}
	return "it is one of " + listed(ranks) + ", and where they are does not tell which of them holds up the others"
}

// listed is two ranks or more in words.
func listed(ranks []int) string {
	var names []string
	for _, r := range ranks[:min(len(ranks), maxNamed)] {
		names = append(names, fmt.Sprint(r))
	}
	text := "ranks " + strings.Join(names, ", ")
	if more := len(ranks) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
