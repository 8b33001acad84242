package rendezvous

import (
	"fmt"
	"syscall"
	"time"
)

// When a node goes, its peers' workers lose their connections to its workers and fail. Those failures may be reported before anybody
// has noticed that the node is gone. So the job does not end at once with a failure when no restart is left: it waits for a while,
// in case there is another cause.
const (
	hearing      = time.Second      // to notice an agent that has left, or that has ended and had a tie to the leader
	reachHearing = 10 * time.Second // for agents to call nodes that they may not reach any more, and to say so
)

// PeersLimit is the largest number of members of a round that all keep connections to each other.
const PeersLimit = 32

// probes reports whether the members probe each other when a worker has failed: that they have lost each other may be why.
func (f *Formed) probes() bool { return len(f.Members) > 1 && len(f.Members) <= PeersLimit }

// hearingTime returns how long the leader waits, after the first failure, for news of another cause. Meanwhile the members probe. If
// an agent without a tie has neither probed nor reported on this round, only its lease shows whether it lives.
func (s *Situation) hearingTime() time.Duration {
	limit := hearing
	heard := make(map[string]bool)
	for _, r := range s.Reports {
		heard[r.Key] = true
		if _, member := s.ranks[r.Key]; member && r.Failure != nil && len(r.Failure.Unreachable) > 0 {
			limit = reachHearing
		}
	}
	for _, n := range s.Nodes {
		if _, member := s.ranks[n.Key]; !member || n.Probed == s.Last.ID {
			continue
		}
		if s.Last.probes() {
			limit = max(limit, reachHearing)
		}
		if n.Untied && !heard[n.Key] {
			limit = max(limit, hearing+s.Lease)
		}
	}
	return limit
}

// failed decides what follows from the first failure. If a restart is left, the round is over at once. What the cause was is settled
// before the next round forms: the cause is a member that is gone by then, or one that others cannot reach, as members find out
// before they join that round. A restart for such a cause is free of charge.
func (s *Situation) failed(f *Failure) Decision {
	m, gone := s.gone()
	d, apart := s.membersApart()
	switch {
	case gone:
		return s.miss(m)
	case apart:
		return d
	case s.Last.Restarts < s.MaxRestarts:
		return Decision{Over: &Ending{
			Why:      fmt.Sprintf("%s; restart %d of %d", f, s.Last.Restarts+1, s.MaxRestarts),
			Restarts: s.Last.Restarts + 1,
		}}
	case len(s.Last.Members) > 1 && f.mayFollow() && !s.over(s.Last.ID, Hearing, s.hearingTime()):
		d := s.wait(s.Last.ID, Hearing, s.hearingTime(), fmt.Sprintf("round %d: %s", s.Last.ID, f), "ends")
		d.Probe = s.Last.probes()
		return d
	default:
		return Decision{Close: &Outcome{Code: f.Code, Failure: f}}
	}
}

// charged reports whether a failure has ended the last round, and the job has paid for it.
func (s *Situation) charged() bool {
	return s.Over != nil && s.Over.Restarts > s.Last.Restarts && len(s.Over.Lost) == 0
}

// mayFollow reports whether a worker may fail like this because it has lost a peer. It ends by itself then.
func (f *Failure) mayFollow() bool { return f.Signal == 0 || f.Signal == int(syscall.SIGABRT) }

// gone is a member of the last round that is not here any more, and had not done its work.
func (s *Situation) gone() (m Candidate, ok bool) {
	if !s.Settled {
		return m, false
	}
	here := s.here()
	succeeded, _ := s.reported()
	for _, m := range s.Last.Members {
		if _, found := here[m.Key]; !found && !succeeded[m.Key] {
			return m, true
		}
	}
	return m, false
}
