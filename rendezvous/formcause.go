package rendezvous

import (
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/env/death"
)

// When a node is lost, workers on other nodes lose their connections to its workers and fail. These failures may be
// reported before anybody has noticed that the node is lost. So if no restart is left, the job does not end with a
// failure at once: it waits for a while, in case there is another cause.
const (
	lossTimeout  = time.Second      // to notice an agent that has left, or that has ended and had a connection to the leader
	peerTimeout  = 5 * time.Second  // for the agent of a worker because of which others failed, to report, at least: see lossTime
	reachTimeout = 10 * time.Second // for the agent of a worker that did not reach others, to call them, and to report
)

// PeersLimit is the largest number of members of a round that all keep connections to each other.
const PeersLimit = 32

// lossTime is how long it takes to notice that an agent has vanished together with its machine: its lease runs out.
func (s *State) lossTime() time.Duration { return lossTimeout + s.Lease }

// causeTimeout returns how long the leader waits for news of another cause after the first failure, whose root cause
// is root as far as is known. If an agent has not reported on this round, and has no connection to the leader, only
// its lease shows whether it is alive.
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

// failed decides what follows from the first failure. If a restart is left, the round is over at once, or in a moment
// if the root cause is yet to be reported. What the cause was is known before the next round forms: the cause is a
// member that is gone by then, or one that others say by then that they cannot reach. A restart for such a cause is
// free of charge. While it is not certain whether a member is gone, no next round forms and the job does not end.
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
	case len(s.Last.Members) > 1 && !f.IsCrash() && !s.expired(s.Last.ID, Cause, s.causeTimeout(root)):
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
	return Decision{Close: &Outcome{Code: root.Code(), Failure: root, Lost: lost}}
}

func (s *State) restartFor(f *Failure) string {
	return f.Describe() + "; " + s.restartNumber(s.Last.Restarts+1)
}

// restartNumber says which restart a round uses up.
func (s *State) restartNumber(n int) string { return fmt.Sprintf("restart %d of %d", n, s.MaxRestarts) }

// why returns why the last round ended, as in Round. If it was a failure, its root cause may have been reported since.
func (s *State) why() (cause *death.Death, why string) {
	switch {
	case s.Over == nil:
		return nil, ""
	case !s.charged() || s.Over.Failure == nil:
		return nil, s.Over.Why
	}
	root := s.Over.Failure
	if len(s.failures) > 0 {
		root = s.rootCause(s.failures[0].Failure)
	}
	d := root.Death
	d.Stderr = nil
	return &d, s.restartNumber(s.Over.Restarts)
}

// charged reports whether a failure ended the last round and used up a restart.
func (s *State) charged() bool {
	return s.Over != nil && s.Over.Restarts > s.Last.Restarts
}

// rootCause returns the root cause of f, as far as it has been reported.
func (s *State) rootCause(f *Failure) *Failure {
	first, all := 0, make([]death.Failure, len(s.failures))
	for i, r := range s.failures {
		all[i] = death.Failure{Death: r.Failure.Death, Peer: r.Failure.FailedPeer}
		if r.Failure == f {
			first = i
		}
	}
	return s.failures[death.RootCause(all, first, s.failureOf)].Failure
}

// failureOf returns the index of what the node of a worker has reported; negative: it has reported no failure.
func (s *State) failureOf(worker int) int {
	key, known := s.nodeOf(worker)
	return slices.IndexFunc(s.failures, func(r Report) bool { return known && r.Key == key })
}

// awaitsPeer reports whether the report of the worker that caused f can still come: its node is here and has not
// reported.
func (s *State) awaitsPeer(f *Failure) bool {
	if !f.follows() {
		return false
	}
	key, known := s.nodeOf(f.FailedPeer.Rank)
	_, found := s.here[key]
	return known && found && !slices.ContainsFunc(s.Reports, func(r Report) bool { return r.Key == key })
}

// follows reports whether the worker is known to have failed because of another one. A crash is its own cause.
func (f *Failure) follows() bool { return f.FailedPeer != nil && !f.IsCrash() }

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
