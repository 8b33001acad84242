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
	silent bool // it answers questions, as a rule, and has not now
}

// waits reports whether the worker waits for another one.
func (m *member) waits() bool {
	return m.status != nil && len(m.status.Waits) > 0
}

// isCircle reports whether it waits in a circle of ranks.
func (m *member) isCircle() bool { return m.waits() && m.status.Suspect == nil }

const (
	stalledFactor = 2  // times the timeout, for a worker that waits and does not know for whom: it may be about to find out
	movingFactor  = 10 // times the timeout, for a worker in an operation that does not wait: it may be moving many bytes
)

// suspect returns the index of the worker that hangs, and so holds up the others; ok is false if there is none on this node.
func suspect(members []member, timeout time.Duration) (index int, ok bool) {
	index = -1
	for i := range members {
		m := &members[i]
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
		if index < 0 || compare(members, i, index) < 0 {
			index = i
		}
	}
	if index < 0 {
		index = lowestInCircle(members, timeout)
	}
	return index, index >= 0
}

// compare says which of two workers is more likely to hold up the others: the one that more of them name, or else the one that made progress
// longest ago.
func compare(members []member, a, b int) int {
	return cmp.Or(
		-cmp.Compare(len(waitersOf(members, members[a].rank)), len(waitersOf(members, members[b].rank))),
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

// because says why it is the worker at index that hangs, as the end of a sentence; empty: nobody is known to wait for it.
func because(members []member, index int) string {
	m := &members[index]
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
	var ranks []string
	for _, i := range waiters[:min(len(waiters), maxNamed)] {
		ranks = append(ranks, fmt.Sprint(members[i].rank))
	}
	text := "ranks " + strings.Join(ranks, ", ")
	if more := len(waiters) - len(ranks); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s wait for it in %s", text, in)
}
