package rendezvous

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// When a node is lost, workers on other nodes lose their connections to its workers and fail. These failures may be reported before
// anybody has noticed that the node is lost. So if no restart is left, the job does not end with a failure at once: it waits for a
// while, in case there is another cause.
const (
	lossTimeout  = time.Second      // to notice an agent that has left, or that has ended and had a connection to the leader
	peerTimeout  = 5 * time.Second  // for the agent of a worker that others have failed because of, to report its failure, or longer: see lossTime
	reachTimeout = 10 * time.Second // for the agent of a worker that could not reach others, to call them, and to say whether it does
)

// PeersLimit is the largest number of members of a round that all keep connections to each other.
const PeersLimit = 32

// lossTime is how long it takes to notice that an agent has vanished together with its machine: its lease runs out.
func (s *State) lossTime() time.Duration { return lossTimeout + s.Lease }

// causeTimeout returns how long the leader waits for news of another cause after the first failure, whose root cause is root as far
// as is known. If an agent has not reported on this round, and has no connection to the leader, only its lease shows whether it is
// alive.
func (s *State) causeTimeout(root *Failure) time.Duration {
	limit := lossTimeout
	if s.awaitsPeer(root) {
		limit = max(peerTimeout, s.lossTime())
	}
	reported := make(map[string]bool)
	for _, r := range s.Reports {
		reported[r.Key] = true
		if _, member := s.nodeRanks[r.Key]; member && r.Failure != nil && len(r.Failure.Unreachable) > 0 {
			limit = reachTimeout
		}
	}
	for _, n := range s.Nodes {
		if _, member := s.nodeRanks[n.Key]; member && n.LeaseOnly && !reported[n.Key] {
			limit = max(limit, s.lossTime())
		}
	}
	return limit
}

// failed decides what follows from the first failure. If a restart is left, the round is over at once, or in a moment if the root cause
// is yet to be reported. What the cause was is known before the next round forms: the cause is a member that is gone by then, or one
// that others say by then that they cannot reach. A restart for such a cause is free of charge. While it is not certain whether a member is
// gone, no next round forms and the job does not end.
func (s *State) failed(f *Failure) Decision {
	m, gone := s.gone()
	d, apart := s.membersApart()
	root := s.rootCause(f)
	restart := s.Last.Restarts < s.MaxRestarts
	switch {
	case gone:
		return s.miss(m)
	case apart:
		return d
	case restart && s.awaitsPeer(root) && !s.expired(s.Last.ID, Cause, lossTimeout):
		return s.awaitCause(f, lossTimeout)
	case restart:
		return Decision{Over: &Ending{Why: s.restartFor(root), Failure: root, Restarts: s.Last.Restarts + 1}}
	case len(s.Last.Members) > 1 && f.mayFollow() && !s.expired(s.Last.ID, Cause, s.causeTimeout(root)):
		return s.awaitCause(f, s.causeTimeout(root))
	case len(s.uncertain()) > 0:
		return s.waitForCertainty(s.Last.ID, Cause, fmt.Sprintf("round %d: %s", s.Last.ID, f))
	default:
		return s.failWith(root)
	}
}

// failedForGood decides what follows from a failure that asks for no restart: the end, at once or in a moment.
func (s *State) failedForGood(f *Failure) Decision {
	root := s.rootCause(f)
	if s.Over == nil && s.awaitsPeer(root) && !s.expired(s.Last.ID, Cause, lossTimeout) {
		return s.awaitCause(f, lossTimeout)
	}
	return s.failWith(root)
}

// awaitCause waits for news of what caused f.
func (s *State) awaitCause(f *Failure, limit time.Duration) Decision {
	return s.wait(s.Last.ID, Cause, limit, fmt.Sprintf("round %d: %s", s.Last.ID, f), "ends")
}

// failWith closes the job.
func (s *State) failWith(root *Failure) Decision {
	by := slices.IndexFunc(s.failures, func(r Report) bool { return r.Failure == root })
	stays := func(n Candidate) bool { return n.Key == s.failures[by].Key && !n.Leaving }
	lost := !slices.ContainsFunc(s.Nodes, stays) && !slices.ContainsFunc(s.leavers, stays) // who asked for no restart is among these
	return Decision{Close: &Outcome{Code: root.Code, Failure: root, Lost: lost}}
}

func (s *State) restartFor(f *Failure) string {
	return fmt.Sprintf("%s; restart %d of %d", f, s.Last.Restarts+1, s.MaxRestarts)
}

// why returns why the last round ended; empty: there was none. If it was a failure, its root cause may have been reported since.
func (s *State) why() string {
	if s.Over == nil {
		return ""
	}
	for _, r := range s.failures {
		if s.charged() && s.Over.Why == s.restartFor(r.Failure) {
			return s.restartFor(s.rootCause(s.failures[0].Failure))
		}
	}
	return s.Over.Why
}

// charged reports whether a failure ended the last round and used up a restart.
func (s *State) charged() bool {
	return s.Over != nil && s.Over.Restarts > s.Last.Restarts && len(s.Over.Lost) == 0
}

// mayFollow reports whether a worker may fail like this because it lost a peer. Such a worker ends by itself.
func (f *Failure) mayFollow() bool { return f.Signal == 0 || f.Signal == int(syscall.SIGABRT) }

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
		if next += m.Node.Nproc; 0 <= worker && worker < next {
			return m.Key, true
		}
	}
	return "", false
}
