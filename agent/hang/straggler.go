package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	slowFactor      = 1.5                    // from which a worker is a straggler
	slowDifference  = 100 * time.Microsecond // and by which it has to be slower each time
	leastOperations = 20                     // in a period, for a worker to be compared
)

// A pace is how fast a worker was in a period.
type pace struct {
	rank  int
	group string        // of what is compared
	unit  string        // what is counted, in the singular
	each  time.Duration // the time that it takes for one
	count uint64        // how many there were
}

// straggler returns a line about the slowest worker, if it is slower than the others by slowFactor; empty: no worker is.
func straggler(paces []pace) string {
	groups := make(map[string][]pace)
	for _, p := range paces {
		if p.count >= leastOperations {
			groups[p.group] = append(groups[p.group], p)
		}
	}
	worst, text := 0.0, ""
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group := groups[name]
		if len(group) < 2 {
			continue
		}
		slices.SortFunc(group, func(a, b pace) int { return cmp.Or(cmp.Compare(a.each, b.each), cmp.Compare(a.rank, b.rank)) })
		slow, others := group[len(group)-1], group[:len(group)-1]
		usual := others[len(others)/2].each
		factor := float64(slow.each) / float64(max(usual, time.Microsecond))
		if factor < max(slowFactor, worst) || slow.each-usual < slowDifference {
			continue
		}
		worst, text = factor, fmt.Sprintf("rank %d is slower than the other ranks of this node by a factor of %.1f: it takes %v from one %s to the next, and they %v, over the last %d",
			slow.rank, factor, round(slow.each), slow.unit, round(usual), slow.count)
	}
	return text
}

func round(d time.Duration) time.Duration {
	if d >= 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Microsecond)
}

// A tally is what the monitor has seen of one worker in a period.
type tally struct {
	group       string
	medians     []time.Duration // between operations, one for each look
	counts      bool            // its file has the number of its steps
	first, last uint64          // operations, or steps
	looks       int
	changes     int // of the file's modification time
}

// pace returns the worker's pace in a period; ok is false if too little is known.
func (t *tally) pace(rank int, period time.Duration) (p pace, ok bool) {
	count := t.last - t.first
	switch {
	case len(t.medians) >= 3:
		medians := slices.Sorted(slices.Values(t.medians))
		return pace{rank, "operations " + t.group, "operation", medians[len(medians)/2], count}, t.last > t.first
	case t.group != "":
		return p, false
	case t.last > t.first:
		return pace{rank, "steps", "step", period / time.Duration(count), count}, true
	case 0 < t.changes && t.changes < t.looks/2: // otherwise there may have been more than were seen
		return pace{rank, "reports", "report", period / time.Duration(t.changes), uint64(t.changes)}, true
	}
	return p, false
}
