package elastic

import (
	"cmp"
	"errors"
	"slices"
)

// A commitID says which commit a rank has. The zero commitID is that of a rank that has none.
type commitID struct {
	round  uint64 // of gorun in which the rank has made the commit, or has agreed on it
	number uint64 // from 1
}

// compare orders commits, the newest last.
func (c commitID) compare(d commitID) int {
	return cmp.Or(cmp.Compare(c.round, d.round), cmp.Compare(c.number, d.number))
}

// A holding is what a rank has when a world begins.
type holding struct {
	commitID
	partial bool // the rank has no commit, and has received a part of one: its variables are no longer those with which it began
	streams int  // from how many sources it can receive at the same time
}

// An agreement says how the ranks of a world come to the same state.
type agreement struct {
	number    uint64 // of the commit with which all begin
	holders   []int  // ranks that have it, in order: one at least
	receivers []int  // the other ranks, in order
	streams   int    // from how many sources each of them can receive at the same time
}

// errNothingWhole says that a world has no state to begin with.
var errNothingWhole = errors.New("elastic: all ranks that had the state have died while the others received it")

// agree decides on the newest of the commits that the ranks of a world have. If no rank has a commit, the variables of the first rank that is
// not partial become commit 1.
func agree(all []holding) (agreement, error) {
	newest := slices.MaxFunc(all, func(a, b holding) int { return a.compare(b.commitID) }).commitID
	a := agreement{number: max(newest.number, 1)}
	for rank, h := range all {
		if h.commitID == newest && !h.partial && (newest != commitID{} || len(a.holders) == 0) {
			a.holders = append(a.holders, rank)
		} else {
			a.receivers = append(a.receivers, rank)
			if a.streams == 0 || h.streams < a.streams {
				a.streams = h.streams
			}
		}
	}
	if len(a.holders) == 0 {
		return a, errNothingWhole
	}
	return a, nil
}
