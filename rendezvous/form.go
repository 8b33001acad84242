package rendezvous

import (
	"fmt"
	"slices"
)

// CodeUnformed is the exit code of a job with too few nodes: EX_TEMPFAIL, try again later.
const CodeUnformed = 75

// Form decides what follows from the state of a job.
func Form(s State) Decision {
	s.apart = pairsOf(s.Unreachable)
	if s.Last != nil {
		s.nodeRanks = nodeRanksOf(s.Last.Members)
		s.late = s.lateNow()
		s.sortReports()
		s.losses = s.lossesNow()
	}
	s.here = make(map[string]Candidate, len(s.Nodes))
	for _, n := range s.Nodes {
		s.here[n.Key] = n
	}
	if s.Last == nil || s.Over != nil {
		return s.gather()
	}
	d := s.watch()
	if d.Over != nil {
		d.Over.Age = s.Age
		d.Over.Gone = s.goneFrom(s.stays(d.Over))
	}
	return d
}

// sortReports sorts the reports of members, and finds the nodes that count as gone because they are about to be: a node that has reported that
// it leaves, as it is ending its workers; and if the round is over, or a worker has failed, perhaps because of that, any node that is leaving,
// and a newcomer that is not fit for the job.
func (s *State) sortReports() {
	s.succeeded = make(map[string]bool)
	s.leaving = make(map[string]bool)
	for _, r := range s.Reports {
		_, member := s.nodeRanks[r.Key]
		switch {
		case r.Left != nil:
			s.leaving[r.Key] = true
		case !member:
		case r.Restart != "":
			s.restart = r.Restart
		case r.Failure == nil:
			s.succeeded[r.Key] = true
		default:
			s.failures = append(s.failures, r)
		}
	}
	if s.Over != nil {
		for _, r := range s.failures {
			s.leaving[r.Key] = s.leaving[r.Key] || r.Failure.Final && s.isNew(r.Key)
		}
	}
	for _, n := range s.Nodes {
		s.leaving[n.Key] = s.leaving[n.Key] || n.Leaving && (s.Over != nil || len(s.failures) > 0)
	}
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Candidate) bool {
		if s.leaving[n.Key] {
			s.leavers = append(s.leavers, n)
		}
		return s.leaving[n.Key]
	})
}

// gather forms a round from the nodes that are joining.
func (s *State) gather() Decision {
	next := Formed{ID: 1}
	limit := s.Max
	if s.Last != nil {
		if f := s.final(); f != nil {
			return s.failedForGood(f)
		}
		if d, found := s.anotherCause(); found {
			return d
		}
		next = Formed{ID: s.Last.ID + 1, Restarts: s.Over.Restarts, Losses: s.losses}
		if s.ScaleUp == ScaleNever {
			limit = min(s.Max, max(s.Min, len(s.nodeRanks)))
		}
	}
	welcome, out := s.joining()
	busy := s.busy()
	waiting := slices.Concat(welcome, out)
	chosen := s.selectMembers(welcome, limit)
	what := fmt.Sprintf("round %d: %d of %s nodes", next.ID, len(waiting), s.size())
	awaited := s.awaited(busy, welcome, chosen, limit)
	more := s.missing() + clause(busy, "has not joined again", "have not joined again") + s.apartNote(waiting) + outNote(out)
	if len(chosen) < s.Min {
		patience := max(s.JoinTimeout, stopTime(awaited), stopTime(s.leavers))
		switch end := s.deserted(); {
		case end != nil:
			return Decision{Close: end}
		case s.expired(next.ID, Enough, patience):
			few := "not enough nodes"
			if len(welcome) >= s.Min {
				few += " reach each other"
			}
			return Decision{Close: &Outcome{Code: CodeUnformed, Reason: fmt.Sprintf("%s: %s after %v%s", few, what, patience, more)}}
		}
		return s.untilLetIn(s.wait(next.ID, Enough, patience, what+more, "gives up"), out)
	}
	// Members of the last round are waited for even if spares could take their places: spares have no workers to end, and would always be first.
	all := s.Settled && len(busy) == 0 && s.Last != nil
	full := len(busy) == 0 && len(chosen) == limit
	lastCall := s.lastCall(busy, awaited)
	if !all && !full && !s.expired(next.ID, LastCall, lastCall) {
		return s.wait(next.ID, LastCall, lastCall, what+more, "closes")
	}
	if s.charged() && len(s.uncertain()) > 0 {
		return s.waitForCertainty(next.ID, LastCall, what+more)
	}
	next.Apart = s.apartFrom(s.Nodes, chosen)
	next.Cause, next.Why = s.why()
	next.Why = s.whyWithout(next.Apart, chosen, next.Why)
	next.Members, next.Late, next.New = order(chosen, s.nodeRanks), s.late, s.newcomers(chosen)
	if s.Last != nil {
		stay := keysOf(chosen)
		next.Gone = s.goneFrom(func(m Candidate) bool { return stay[m.Key] })
	}
	return Decision{Form: &next}
}

// anotherCause decides anew about a round that a failure has ended, if a member is gone, or cannot be reached: others may have failed because
// of that.
func (s *State) anotherCause() (d Decision, found bool) {
	if !s.charged() {
		return d, false
	}
	d, found = s.membersApart()
	if m, gone := s.gone(); gone {
		d, found = s.miss(m), true
	}
	if d.Over != nil {
		d.Over.Age = s.Over.Age
		d.Over.Gone = s.goneFrom(s.stays(d.Over))
	}
	return d, found
}

// watch looks for the end of the running round.
func (s *State) watch() Decision {
	if len(s.succeeded) == len(s.Last.Members) {
		return Decision{Close: &Outcome{}}
	}
	if f := s.final(); f != nil {
		return s.failedForGood(f)
	}
	if m, f := s.unfit(); f != nil {
		return s.dropUnfit(m, f)
	}
	if len(s.failures) > 0 {
		return s.failed(s.failures[0].Failure)
	}
	if m, gone := s.gone(); gone {
		return s.miss(m)
	}
	if d, apart := s.membersApart(); apart && s.Settled {
		return d
	}
	if s.restart != "" {
		return s.end(s.restart)
	}
	if most := s.Max; len(s.Last.Members) > most { // the limit has changed
		return s.end(fmt.Sprintf("the job has at most %d nodes now", most))
	}
	for _, m := range s.Last.Members {
		if now, found := s.here[m.Key]; found && now.Try != m.Try {
			why := m.name() + " does not take part"
			if now.Joining {
				why = m.name() + " joins again"
			}
			return s.drop(m, why)
		}
	}
	return s.grow(len(s.succeeded) > 0)
}

// final returns the first failure of a member that asks for no restart, newcomers left aside. Others may fail because of it and report first.
func (s *State) final() *Failure {
	for _, r := range s.failures {
		if r.Failure.Final && !s.isNew(r.Key) {
			return r.Failure
		}
	}
	return nil
}

// miss decides what follows when a member is absent.
func (s *State) miss(m Candidate) Decision {
	if end := s.deserted(); end != nil {
		return Decision{Close: end}
	}
	return s.drop(m, s.whyGone(m))
}

// deserted returns how the job ends if there are too few nodes because a member of the last round has left for a reason;
// nil: the job goes on. A newcomer that leaves does not end the job: the others wait for another one.
func (s *State) deserted() *Outcome {
	if s.Last == nil || !s.Settled || len(s.Nodes) >= s.Min {
		return nil
	}
	for _, r := range s.Reports {
		rank, member := s.nodeRanks[r.Key]
		if _, found := s.here[r.Key]; found || !member || s.Last.New[r.Key] > 0 || r.Left == nil || r.Left.Success() {
			continue
		}
		return &Outcome{Code: r.Left.Code, Reason: s.Last.Members[rank].name() + " has left" + because(r.Left)}
	}
	return nil
}

// left returns the reason that m gave when it left; nil: none.
func (s *State) left(m Candidate) *Outcome {
	for _, r := range s.Reports {
		if r.Key == m.Key {
			return r.Left
		}
	}
	return nil
}

func because(left *Outcome) string {
	if left.Success() {
		return ""
	}
	return ": " + left.Reason
}

// end ends the round without using up a restart.
func (s *State) end(why string) Decision {
	return Decision{Over: &Ending{Why: why, Restarts: s.Last.Restarts}}
}

// grow ends a running round to let newcomers in, unless some of its workers are done.
func (s *State) grow(ending bool) Decision {
	welcome, out := s.joining()
	members := s.Last.Members
	waiting := slices.Concat(welcome, out)
	left := s.apartFrom(waiting, members)
	apart := func(c Candidate) bool { return slices.Contains(left, c) }
	welcome, out = slices.DeleteFunc(welcome, apart), slices.DeleteFunc(out, apart)
	newcomers, size := len(welcome), len(members)
	what := fmt.Sprintf("round %d is running with %d of %s nodes%s", s.Last.ID, size, s.size(), s.apartNote(slices.Concat(left, members)))
	switch {
	case newcomers+len(out) == 0:
	case size >= s.Max:
		what += fmt.Sprintf("; spares: %d", newcomers+len(out))
	case ending:
		what += ", and some have done their work"
	case s.ScaleUp == ScaleOnRestart:
		what += "; others get in when there is a new round"
	case s.ScaleUp == ScaleNever:
		what += "; others get in for one that is lost"
	case newcomers == 0:
		return s.untilLetIn(Decision{Wait: what + outNote(out), Stage: Stage{Round: s.Last.ID}}, out)
	case len(s.selectMembers(slices.Concat(members, welcome), s.Max)) < s.Min: // the limit has changed
		what += fmt.Sprintf("; too few wait for another round: %d", newcomers)
	case size+newcomers >= s.Max || s.expired(s.Last.ID, Newcomers, s.LastCall):
		d := s.end(fmt.Sprintf("more nodes have come: %d", newcomers))
		d.Over.NewHosts = s.newHosts(s.selectMembers(slices.Concat(members, welcome), s.Max))
		return d
	default:
		return s.wait(s.Last.ID, Newcomers, s.LastCall, what, "ends for more")
	}
	return Decision{Wait: what, Stage: Stage{Round: s.Last.ID}}
}
