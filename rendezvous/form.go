package rendezvous

import (
	"fmt"
	"strings"
	"time"
)

// Rules are what all nodes of a job go by.
type Rules struct {
	Min, Max    int           // nodes of a round
	MaxRestarts int           // the job's budget
	LastCall    time.Duration // how long more nodes are waited for once there are Min
	JoinTimeout time.Duration // how long fewer than Min are put up with
	Patience    time.Duration // how long a dead node may look alive
	ScaleUp     ScaleUp
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
	Port    int   // reserved there, for the master if this becomes rank 0
	Since   int64 // the lower, the longer it has been here
	Joining bool  // a Join waits; otherwise it is still busy with a round, or with its end
	Try     int   // number of the agent's last Join
}

// A Formed is a round on record.
type Formed struct {
	ID       int
	Members  []Candidate // in rank order
	Restarts int         // of the job's budget, used before it
	Why      string      // it follows another; empty: it is the first
}

// An Ending says why a round is over although the job is not.
type Ending struct {
	Why      string
	Restarts int // of the job's budget, used with it
}

// A Report is what a node has said of the last round: success, if the others are empty.
type Report struct {
	Key     string // Candidate.Key
	Failure *Failure
	Left    string // it has left the job, for this reason
}

// A Stage is what a leader waits for. The stages of two rounds differ.
type Stage struct {
	Round int
	For   Awaited
}

// Awaited is what ends a Stage.
type Awaited int

// The zero value is news: nothing that time would bring.
const (
	News      Awaited = iota
	Enough            // the JoinTimeout ends it
	LastCall          // the LastCall ends it
	Newcomers         // the LastCall ends it
	Clash             // two nodes ask for one rank; the Patience ends it
)

// A Situation is all that Form goes by.
type Situation struct {
	Rules
	Last    *Formed     // nil: no round has formed
	Over    *Ending     // of Last; nil: it is running
	Nodes   []Candidate // that are here now
	Reports []Report    // on Last, the first one first
	Settled bool        // absent nodes are really gone: the leader has not just been cut off itself
	Stage   Stage       // of the last decision
	Waited  time.Duration

	ranks ranks // in Last
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
}

// The exit codes of jobs that no worker has ended.
const (
	codeLeft     = 1
	codeMisused  = 2
	codeUnformed = 75
)

// Form says what follows from a situation.
func Form(s Situation) Decision {
	if s.Last != nil {
		s.ranks = ranksOf(s.Last.Members)
	}
	if s.Last != nil && s.Over == nil {
		return s.watch()
	}
	return s.gather()
}

// gather makes a round of those who are joining.
func (s *Situation) gather() Decision {
	next := Formed{ID: 1}
	limit := s.Max
	if s.Last != nil {
		next = Formed{ID: s.Last.ID + 1, Restarts: s.Over.Restarts, Why: s.Over.Why}
		if s.ScaleUp == ScaleNever {
			limit = max(s.Min, len(s.ranks))
		}
	}
	joining, busy := s.joining(), s.busy()
	chosen := choose(joining, s.ranks, limit)
	what := fmt.Sprintf("round %d: %d of %s nodes", next.ID, len(joining), s.size())
	if len(chosen) < s.Min {
		if s.over(next.ID, Enough, s.JoinTimeout) {
			return Decision{Close: &Outcome{Code: codeUnformed, Reason: fmt.Sprintf("%s after %v", what, s.JoinTimeout)}}
		}
		return s.wait(next.ID, Enough, s.JoinTimeout, what, "gives up")
	}
	if a, b, ok := clash(chosen); ok {
		reason := fmt.Sprintf("%s and %s both ask for node rank %d", a.name(), b.name(), a.Node.NodeRank)
		if s.over(next.ID, Clash, s.Patience) {
			return Decision{Close: &Outcome{Code: codeMisused, Reason: reason}}
		}
		return s.wait(next.ID, Clash, s.Patience, fmt.Sprintf("round %d: %s", next.ID, reason), "gives up")
	}
	// Whoever was in the last round is waited for: to end its workers takes longer than to wait as a spare.
	all := s.Settled && len(busy) == 0 && s.Last != nil
	full := len(busy) == 0 && len(chosen) == limit
	if !all && !full && !s.over(next.ID, LastCall, s.LastCall) {
		if len(busy) > 0 {
			what += "; " + busy[0].name() + " is ending its workers"
		}
		return s.wait(next.ID, LastCall, s.LastCall, what, "closes")
	}
	next.Members = order(chosen, s.ranks)
	return Decision{Form: &next}
}

// watch looks for the end of the running round.
func (s *Situation) watch() Decision {
	var left *Report
	succeeded := make(map[string]bool)
	for i, r := range s.Reports {
		_, member := s.ranks[r.Key]
		switch {
		case !member:
		case r.Failure != nil:
			return s.failed(r.Failure)
		case r.Left != "":
			left = &s.Reports[i]
		default:
			succeeded[r.Key] = true
		}
	}
	if len(succeeded) == len(s.Last.Members) {
		return Decision{Close: &Outcome{}}
	}
	here := make(map[string]Candidate)
	for _, n := range s.Nodes {
		here[n.Key] = n
	}
	for _, m := range s.Last.Members {
		now, found := here[m.Key]
		switch {
		case found && now.Joining && now.Try != m.Try:
			return s.end(m.name() + " joins again")
		case found || !s.Settled || succeeded[m.Key]:
		case left != nil && len(s.Nodes) < s.Min:
			gone := s.Last.Members[s.ranks[left.Key]]
			return Decision{Close: &Outcome{Code: codeLeft, Reason: fmt.Sprintf("%s has left: %s", gone.name(), left.Left)}}
		default:
			return s.end(m.name() + " is lost")
		}
	}
	return s.grow(len(succeeded) > 0)
}

// failed: the first failure counts.
func (s *Situation) failed(f *Failure) Decision {
	if f.Final || s.Last.Restarts >= s.MaxRestarts {
		return Decision{Close: &Outcome{Code: f.Code, Failure: f}}
	}
	return Decision{Over: &Ending{
		Why:      fmt.Sprintf("%s; restart %d of %d", f, s.Last.Restarts+1, s.MaxRestarts),
		Restarts: s.Last.Restarts + 1,
	}}
}

// end is an end that is free of charge.
func (s *Situation) end(why string) Decision {
	return Decision{Over: &Ending{Why: why, Restarts: s.Last.Restarts}}
}

// grow ends a running round for newcomers. If some of its workers are done, it is not worth it.
func (s *Situation) grow(ending bool) Decision {
	newcomers, size := len(s.joining()), len(s.Last.Members)
	what := fmt.Sprintf("round %d is running with %d of %s nodes", s.Last.ID, size, s.size())
	if newcomers == 0 || size >= s.Max || s.ScaleUp != ScaleImmediate || ending {
		return Decision{Wait: what, Stage: Stage{Round: s.Last.ID}}
	}
	if size+newcomers >= s.Max || s.over(s.Last.ID, Newcomers, s.LastCall) {
		return s.end(fmt.Sprintf("more nodes have come: %d", newcomers))
	}
	return s.wait(s.Last.ID, Newcomers, s.LastCall, what, "ends for more")
}

// over reports whether the stage is the present one and has lasted for limit.
func (s *Situation) over(round int, stage Awaited, limit time.Duration) bool {
	return s.waited(round, stage) >= limit
}

func (s *Situation) waited(round int, stage Awaited) time.Duration {
	if s.Stage != (Stage{round, stage}) {
		return 0
	}
	return s.Waited
}

func (s *Situation) wait(round int, stage Awaited, limit time.Duration, what, then string) Decision {
	left := limit - s.waited(round, stage)
	return Decision{
		Wait:  what,
		Then:  then,
		Stage: Stage{round, stage},
		After: left,
	}
}

// Reason is Wait with the time that is left.
func (d Decision) Reason() string {
	if d.After == 0 {
		return d.Wait
	}
	return fmt.Sprintf("%s; %s in %v", d.Wait, d.Then, d.After.Round(time.Second))
}

// joining is who waits for the next round.
func (s *Situation) joining() (joining []Candidate) {
	for _, n := range s.Nodes {
		if n.Joining && !s.got(n) {
			joining = append(joining, n)
		}
	}
	return joining
}

// busy is who was in the last round, is here, and waits not yet for the next one.
func (s *Situation) busy() (busy []Candidate) {
	for _, n := range s.Nodes {
		if _, member := s.ranks[n.Key]; member && (!n.Joining || s.got(n)) {
			busy = append(busy, n)
		}
	}
	return busy
}

// got reports whether the last round is what n waited for, even if n does not know it yet.
func (s *Situation) got(n Candidate) bool {
	r, member := s.ranks[n.Key]
	return member && s.Last.Members[r].Try == n.Try
}

func (s *Situation) size() string {
	if s.Min == s.Max {
		return fmt.Sprint(s.Min)
	}
	return fmt.Sprintf("%d to %d", s.Min, s.Max)
}

// name is what people call the node.
func (c Candidate) name() string {
	if strings.Contains(c.Node.ID, c.Node.Host) {
		return c.Node.ID
	}
	return c.Node.ID + " on " + c.Node.Host
}
