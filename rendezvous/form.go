package rendezvous

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rules are what all nodes of a job go by.
type Rules struct {
	Min, Max    int           // nodes of a round
	MaxRestarts int           // the job's budget
	LastCall    time.Duration // how long more nodes are waited for once there are Min
	JoinTimeout time.Duration // how long fewer than Min are put up with
	ScaleUp     ScaleUp
	Lease       time.Duration // after which a node is gone that gives no sign
}

// A ScaleUp says when a newcomer gets into a job that has a round with room for it. Its zero value is none.
type ScaleUp string

const (
	// ScaleImmediate ends the round for it, after the last call or when the next one would be full.
	ScaleImmediate ScaleUp = "immediate"
	// ScaleOnRestart lets it in when there is a new round for another reason.
	ScaleOnRestart ScaleUp = "on-restart"
	// ScaleNever lets it in only for a node that the last round had.
	ScaleNever ScaleUp = "never"
)

// A Candidate is a node that may become a member of a round.
type Candidate struct {
	Key     string // of the agent, the same for all its life
	Node    Node
	Port    int   // there, for the master if this becomes rank 0
	Door    int   // there, at which the agent answers others
	Since   int64 // the lower, the longer it has been here
	Try     int   // number of the agent's last Join
	Untied  bool  // nothing shows the leader at once whether the agent has ended
	Joining bool  // that waits, or has got its round; otherwise it has been withdrawn
	Probed  int   // the last round for which its agent was asked to probe, and has
}

// A Formed is a round on record.
type Formed struct {
	ID       int
	Members  []Candidate // in rank order
	Restarts int         // of the job's budget, used before it
	Why      string      // it follows another; empty: it is the first
	Flaps    []Flap
	New      map[string]bool // who came when the job had a round already, and has not stayed for long, by Key
	Late     map[string]int  // who was not waiting then, but busy with an earlier round: Try, by Key
	Apart    []Candidate     // nodes that are here, but left out because they are apart from a member
}

// An Ending says why a round is over although the job is not.
type Ending struct {
	Why      string
	Restarts int      // of the job's budget, used with it
	Lost     []string // hosts that were lost soon after the round had formed; empty: a new one
	Soon     bool     // it was then
	Apart    []string // members, by Key, to leave out next, as others cannot reach them
}

// A Report is what a node has said of the last round: success, if the others are nil.
type Report struct {
	Key     string // Candidate.Key
	Failure *Failure
	Left    *Outcome // it has left the job, which is the job's outcome if too few nodes are left; success: it never is
}

// A Situation is all that Form goes by.
type Situation struct {
	Rules
	Last    *Formed       // nil: no round has formed; Key, Try, and ID and Host of Node are all that counts of its members
	Age     time.Duration // of Last, as far as the leader knows
	Over    *Ending       // of Last; nil: it is running
	Nodes   []Candidate   // that are here now
	Reports []Report      // on Last, the first one first
	Settled bool          // absent nodes are really gone: the leader has not just been cut off itself
	Stage   Stage         // of the last decision
	Waited  time.Duration

	Unreachable []Unreachable

	ranks ranks // in Last
	late  map[string]int
	flaps []Flap
	apart pairs
}

// A Decision is one of four: the job is closed, the last round is over, a round is formed, or nothing is to be done
// until there is news or After has passed.
type Decision struct {
	Close *Outcome
	Over  *Ending
	Form  *Formed
	Wait  string        // for people who wait to get in: what for
	Then  string        // what happens After
	Stage Stage         // to be passed to the next Form, with how long it has been the same
	After time.Duration // 0: ask again on news only
	Probe bool          // asks every member to find out whether it reaches the others, and to say so
}

// codeUnformed is the exit code of jobs for which there are too few nodes.
const codeUnformed = 75

// Form says what follows from a situation.
func Form(s Situation) Decision {
	s.apart = pairsOf(s.Unreachable)
	if s.Last != nil {
		s.ranks = ranksOf(s.Last.Members)
		s.late = s.lateNow()
		s.Nodes = s.staying()
		s.flaps = s.flapsNow()
	}
	if s.Last == nil || s.Over != nil {
		return s.gather()
	}
	d := s.watch()
	if d.Over != nil {
		d.Over.Soon = s.soon()
	}
	return d
}

// staying is who is here, but for members of the last round that have said that they leave: they are ending their workers.
func (s *Situation) staying() []Candidate {
	leaving := make(map[string]bool)
	for _, r := range s.Reports {
		if r.Left != nil {
			leaving[r.Key] = true
		}
	}
	if len(leaving) == 0 {
		return s.Nodes
	}
	return slices.DeleteFunc(slices.Clone(s.Nodes), func(n Candidate) bool { return leaving[n.Key] })
}

// gather makes a round of those who are joining.
func (s *Situation) gather() Decision {
	next := Formed{ID: 1}
	limit := s.Max
	if s.Last != nil {
		if f := s.final(); f != nil {
			return Decision{Close: &Outcome{Code: f.Code, Failure: f}}
		}
		if s.charged() { // others may have failed because a member is gone, or cannot be reached
			d, found := s.membersApart()
			if m, gone := s.gone(); gone {
				d, found = s.miss(m), true
			}
			if d.Over != nil {
				d.Over.Soon = s.Over.Soon
			}
			if found {
				return d
			}
		}
		next = Formed{ID: s.Last.ID + 1, Restarts: s.Over.Restarts, Why: s.Over.Why, Flaps: s.flaps}
		if s.ScaleUp == ScaleNever {
			limit = max(s.Min, len(s.ranks))
		}
	}
	welcome, out := s.joining()
	busy := s.busy()
	waiting := slices.Concat(welcome, out)
	chosen := s.selectMembers(welcome, out, limit)
	what := fmt.Sprintf("round %d: %d of %s nodes", next.ID, len(waiting), s.size())
	more := s.missing() + ending(busy) + s.apartNote(waiting)
	if len(chosen) < s.Min {
		switch end := s.deserted(); {
		case end != nil:
			return Decision{Close: end}
		case s.over(next.ID, Enough, s.JoinTimeout):
			return Decision{Close: &Outcome{Code: codeUnformed, Reason: fmt.Sprintf("%s after %v%s%s", what, s.JoinTimeout, s.missing(), s.apartNote(waiting))}}
		}
		return s.wait(next.ID, Enough, s.JoinTimeout, what+more, "gives up")
	}
	// Whoever was in the last round is waited for: to end its workers takes longer than to wait as a spare.
	all := s.Settled && len(busy) == 0 && s.Last != nil
	full := len(busy) == 0 && len(chosen) == limit
	lastCall := s.lastCall(busy)
	if !all && !full && !s.over(next.ID, LastCall, lastCall) {
		return s.wait(next.ID, LastCall, lastCall, what+more, "closes")
	}
	next.Apart = s.apartFrom(s.Nodes, chosen)
	next.Why = s.whyWithout(next.Apart, chosen, next.Why)
	next.Members, next.Late, next.New = order(chosen, s.ranks), s.late, s.newcomers(chosen)
	return Decision{Form: &next}
}

// watch looks for the end of the running round.
func (s *Situation) watch() Decision {
	succeeded, failure := s.reported()
	if len(succeeded) == len(s.Last.Members) {
		return Decision{Close: &Outcome{}}
	}
	if f := s.final(); f != nil {
		return Decision{Close: &Outcome{Code: f.Code, Failure: f}}
	}
	if failure != nil {
		return s.failed(failure)
	}
	if m, gone := s.gone(); gone {
		return s.miss(m)
	}
	if d, apart := s.membersApart(); apart && s.Settled {
		return d
	}
	here := s.here()
	for _, m := range s.Last.Members {
		now, found := here[m.Key]
		switch {
		case found && now.Try != m.Try && now.Joining:
			return s.drop(m, m.name()+" joins again", codeUnformed)
		case found && now.Try != m.Try:
			return s.drop(m, m.name()+" does not take part", codeUnformed)
		}
	}
	return s.grow(len(succeeded) > 0)
}

// reported is which members have done their work, and what the first failure was.
func (s *Situation) reported() (succeeded map[string]bool, failure *Failure) {
	succeeded = make(map[string]bool)
	for _, r := range s.Reports {
		_, member := s.ranks[r.Key]
		switch {
		case !member || r.Left != nil:
		case r.Failure == nil:
			succeeded[r.Key] = true
		case failure == nil:
			failure = r.Failure
		}
	}
	return succeeded, failure
}

// final is the first failure of a member that asks for no restart. Others may fail before it is told, and because of it.
func (s *Situation) final() *Failure {
	for _, r := range s.Reports {
		if _, member := s.ranks[r.Key]; member && r.Left == nil && r.Failure != nil && r.Failure.Final {
			return r.Failure
		}
	}
	return nil
}

// miss follows the absence of a member.
func (s *Situation) miss(m Candidate) Decision {
	if end := s.deserted(); end != nil {
		return Decision{Close: end}
	}
	if left := s.left(m); left != nil {
		return s.drop(m, m.name()+" has left"+because(left), cmp.Or(left.Code, codeUnformed))
	}
	return s.drop(m, m.name()+" is lost", codeUnformed)
}

// deserted is how the job ends if too few nodes are here since a member of the last round has left for a reason; nil: it
// goes on. A newcomer does not end it: the others wait for a better one.
func (s *Situation) deserted() *Outcome {
	if s.Last == nil || !s.Settled || len(s.Nodes) >= s.Min {
		return nil
	}
	here := s.here()
	for _, r := range s.Reports {
		rank, member := s.ranks[r.Key]
		if _, found := here[r.Key]; found || !member || s.Last.New[r.Key] || r.Left == nil || r.Left.Success() {
			continue
		}
		return &Outcome{Code: r.Left.Code, Reason: s.Last.Members[rank].name() + " has left" + because(r.Left)}
	}
	return nil
}

// left is what m said when it left; nil: nothing.
func (s *Situation) left(m Candidate) *Outcome {
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

// end is an end that is free of charge.
func (s *Situation) end(why string) Decision {
	return Decision{Over: &Ending{Why: why, Restarts: s.Last.Restarts}}
}

// grow ends a running round for newcomers. If some of its workers are done, it is not worth it.
func (s *Situation) grow(ending bool) Decision {
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
		return s.cool(what, out)
	case size+newcomers >= s.Max || s.over(s.Last.ID, Newcomers, s.LastCall):
		return s.end(fmt.Sprintf("more nodes have come: %d", newcomers))
	default:
		return s.wait(s.Last.ID, Newcomers, s.LastCall, what, "ends for more")
	}
	return Decision{Wait: what, Stage: Stage{Round: s.Last.ID}}
}
