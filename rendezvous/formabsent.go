package rendezvous

// A leader that has just been cut off does not know of a member that is absent whether it is gone: it may have been cut off as well, and
// be coming back. If it is gone, workers on other nodes may have failed because of that. So until the leader is settled, which takes a
// limited time, no failure counts for good: see uncertain.

// isGone reports whether a member of the last round is known to be no longer here. One that is absent may come back if the leader has
// just been cut off, unless it has reported that it leaves.
func (s *State) isGone(m Candidate) bool {
	_, found := s.here[m.Key]
	return !found && (s.Settled || s.left(m) != nil)
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

// uncertain returns the members of the last round that are absent, and had not finished their work, but may come back. They are the
// cause of a failure if they do not.
func (s *State) uncertain() (list []Candidate) {
	for _, m := range s.Last.Members {
		if _, found := s.here[m.Key]; !found && !s.isGone(m) && !s.succeeded[m.Key] {
			list = append(list, m)
		}
	}
	return list
}

// waitForCertainty waits until the leader is settled. Whether the absent members are gone decides whether a failure costs a restart.
func (s *State) waitForCertainty(round int, stage Awaited, what string) Decision {
	return Decision{Wait: what + clause(s.uncertain(), "may come back", "may come back"), Stage: Stage{round, stage}}
}

// enough reports whether the job has Min nodes without so many of those that are here, if the absent ones that may come back do.
func (s *State) enough(without int) bool { return len(s.Nodes)+len(s.uncertain())-without >= s.Min }
