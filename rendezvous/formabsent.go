package rendezvous

import "slices"

// This file is about members that are absent while the leader is not settled. A leader that could not use the etcd a
// moment ago does not know whether such a member is gone: the member may have been cut off as well, and may come
// back. If it is gone, workers on other nodes may have failed because of that, and their failure costs no restart. So
// the leader waits until it is settled before a failure costs a restart, or ends the job. That takes a limited time.

// isGone reports whether a member of the last round is known to be no longer here: it is absent and the leader is
// settled, or it is leaving.
func (s *State) isGone(m Candidate) bool {
	_, found := s.here[m.Key]
	return !found && (s.Settled || s.leaving[m.Key])
}

// gone returns a member of the last round that is gone and had not finished its work.
func (s *State) gone() (m Candidate, ok bool) {
	for _, m := range s.Last.Members {
		if s.isGone(m) && !s.succeeded[m.Key] {
			return m, true
		}
	}
	return m, false
}

// uncertain returns the members of the last round that may be gone, and had not finished their work: those that are
// absent, and those that show no other sign of life than a lease, which has its full time again after an outage. If
// they are gone, they are the cause of a failure.
func (s *State) uncertain() (list []Candidate) {
	if s.Settled {
		return nil
	}
	for _, m := range s.Last.Members {
		now, found := s.here[m.Key]
		if !s.isGone(m) && !s.succeeded[m.Key] && (!found || s.mayHaveEnded(now)) {
			list = append(list, m)
		}
	}
	return list
}

// mayHaveEnded reports whether only a lease shows that a member is here: it has no connection to the leader, and has neither reported nor
// joined again.
func (s *State) mayHaveEnded(n Candidate) bool {
	return n.LeaseOnly && s.got(n) && !slices.ContainsFunc(s.Reports, func(r Report) bool { return r.Key == n.Key })
}

// waitForCertainty waits until the leader is settled, and so knows whether the absent members are gone.
func (s *State) waitForCertainty(round int, what Awaited, reason string) Decision {
	return Decision{Wait: reason + clause(s.uncertain(), "may be gone", "may be gone"), Stage: Stage{round, what}}
}
