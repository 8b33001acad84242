package rendezvous

import "slices"

// RootCause returns the failure at the root of one. Failures are numbered in the order in which they were reported. because says
// which other failure, or which earlier one of its own, has caused one; negative: none that is known. Of failures that have caused
// each other it is the first.
func RootCause(failure int, because func(failure int) int) int {
	seen := make(map[int]bool)
	for !seen[failure] {
		seen[failure] = true
		cause := because(failure)
		if cause < 0 {
			return failure
		}
		failure = cause
	}
	first := failure
	for other := because(failure); other != failure; other = because(other) {
		first = min(first, other)
	}
	return first
}

// rootCause returns the failure that caused f, if it has been reported, or else f.
func (s *State) rootCause(f *Failure) *Failure {
	first := slices.IndexFunc(s.failures, func(r Report) bool { return r.Failure == f })
	root := RootCause(first, func(i int) int {
		f := s.failures[i].Failure
		if !f.follows() {
			return -1
		}
		for _, rank := range []int{f.FailedPeer.Rank, f.FailedPeer.Finder} {
			key, known := s.nodeOf(rank)
			other := slices.IndexFunc(s.failures, func(r Report) bool { return known && r.Key == key })
			if other >= 0 && other != i {
				return other
			}
		}
		return -1
	})
	return s.failures[root].Failure
}

// awaitsPeer reports whether the report of the worker that caused f can still come: its node is here and has not reported.
func (s *State) awaitsPeer(f *Failure) bool {
	if !f.follows() {
		return false
	}
	key, known := s.nodeOf(f.FailedPeer.Rank)
	_, found := s.here[key]
	return known && found && !slices.ContainsFunc(s.Reports, func(r Report) bool { return r.Key == key })
}

// follows reports whether the worker is known to have failed because of another one. A crash is its own cause.
func (f *Failure) follows() bool { return f.FailedPeer != nil && f.mayFollow() }

// nodeOf returns the Key of the member of the last round that has a worker's rank.
func (s *State) nodeOf(worker int) (key string, known bool) {
	next := 0
	for _, m := range s.Last.Members {
		if m.Node.Nproc < 1 { // it was not there when the round was put back
			return "", false
		}
		if next += m.Node.Nproc; 0 <= worker && worker < next {
			return m.Key, true
		}
	}
	return "", false
}
