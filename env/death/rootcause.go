package death

import (
	"slices"
	"time"
)

// A Failure is the death of a worker that has failed, and what this worker says of the reason.
type Failure struct {
	Death
	Peer    *Peer     // because of which it has failed; nil: none that it knows of
	Written time.Time // what it says, by a clock that all failures have in common; zero: it says nothing, or there is no such clock
}

// A Peer is a worker because of which another one has failed.
type Peer struct {
	Rank   int `json:"rank"`
	Finder int `json:"finder"` // of the worker that has found that out
}

// RootCause returns the index of the root cause of failures. They are in the order in which they were noticed, and first is the index of the
// one that is to be explained. of returns the index of the failure that a rank is known by; negative: there is none.
//
//  1. A crash is its own cause. It explains the others, too: the connections of a dying process close before its end is noticed, so a peer
//     that fails because of this may be noticed first.
//  2. A worker may say because of which other one it has failed. Then that one is the cause, if it has failed by itself. Of workers that
//     name each other, the first one is.
//  3. Of workers that name no other, it is the one that has said first why it fails. A worker may take long to end after that.
func RootCause(failures []Failure, first int, of func(rank int) (index int)) int {
	if failures[first].IsCrash() {
		return first
	}
	if crash := slices.IndexFunc(failures, func(f Failure) bool { return f.IsCrash() }); crash >= 0 {
		return crash
	}
	root := follow(first, func(i int) int { return because(failures, i, of) })
	oldest := failures[root].Written
	if oldest.IsZero() {
		return root
	}
	for i, f := range failures {
		if f.Peer == nil && !f.Written.IsZero() && f.Written.Before(oldest) {
			root, oldest = i, f.Written
		}
	}
	return root
}

// because returns the index of the failure that caused the one at index i, as its worker says; negative: there is none.
func because(failures []Failure, i int, of func(rank int) int) int {
	f := &failures[i]
	if f.Peer == nil {
		return -1
	}
	for _, rank := range []int{f.Peer.Rank, f.Peer.Finder} {
		if other := of(rank); other >= 0 && other != i && failures[other].explains(f) {
			return other
		}
	}
	return -1
}

// explains reports whether f, which later names, failed by itself. If gorun stopped it, what it says shows this: it has then said it before
// later has. A worker that has only found out why another one revoked the round lived on until it was stopped. Without a common clock, f is
// what its node has found to be a failure of its own.
func (f *Failure) explains(later *Failure) bool {
	if !f.Stopped || later.Written.IsZero() {
		return true
	}
	hasFound := later.Cause == Revoked && f.Peer != nil
	return !hasFound && !f.Written.IsZero() && f.Written.Before(later.Written)
}

// follow goes from cause to cause, and returns the last one; if they make a circle, the first of these.
func follow(i int, cause func(i int) int) int {
	seen := make(map[int]bool)
	for !seen[i] {
		seen[i] = true
		next := cause(i)
		if next < 0 {
			return i
		}
		i = next
	}
	first := i
	for other := cause(i); other != i; other = cause(other) {
		first = min(first, other)
	}
	return first
}
