package rendezvous

import (
	"fmt"
	"time"
)

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
	Cause             // the causeTimeout ends it
)

// over reports whether the stage is the present one and has lasted for limit.
func (s *State) over(round int, stage Awaited, limit time.Duration) bool {
	return s.waited(round, stage) >= limit
}

func (s *State) waited(round int, stage Awaited) time.Duration {
	if s.Stage != (Stage{round, stage}) {
		return 0
	}
	return s.Waited
}

func (s *State) wait(round int, stage Awaited, limit time.Duration, what, then string) Decision {
	return Decision{Wait: what, Then: then, Stage: Stage{round, stage}, After: limit - s.waited(round, stage)}
}

// Reason is Wait with the time that is left.
func (d Decision) Reason() string {
	if d.After == 0 {
		return d.Wait
	}
	return fmt.Sprintf("%s; %s in %v", d.Wait, d.Then, d.After.Round(time.Second))
}

// joining is who waits for the next round, and who of them is kept out of it. Who asks for a rank that another has is
// neither: it is in nobody's way.
func (s *State) joining() (welcome, out []Candidate) {
	holders := s.holders()
	for _, n := range s.Nodes {
		if !n.Joining || s.got(n) {
			continue
		}
		if holder, asked := holders[n.Node.NodeRank]; asked && holder.Key != n.Key {
			continue
		}
		if ban, _ := s.banned(n); ban > 0 {
			out = append(out, n)
		} else {
			welcome = append(welcome, n)
		}
	}
	return welcome, out
}

// busy is who has not done with the last round yet.
func (s *State) busy() (busy []Candidate) {
	for _, n := range s.Nodes {
		if _, member := s.ranks[n.Key]; member && s.got(n) {
			busy = append(busy, n)
		}
	}
	return busy
}

// lateNow is who has not done with the last round, or with one before it, whether it stays or not.
func (s *State) lateNow() map[string]int {
	late := make(map[string]int)
	for _, n := range s.Nodes {
		if s.got(n) {
			late[n.Key] = n.Try
		}
	}
	return late
}

// got reports whether n has got the round that it has waited for last, even if n does not know that it has formed.
func (s *State) got(n Candidate) bool {
	if s.Last == nil {
		return false
	}
	try, has := s.Last.Late[n.Key]
	if r, member := s.ranks[n.Key]; member {
		try, has = s.Last.Members[r].Try, true
	}
	return has && try == n.Try
}

func (s *State) size() string {
	if s.Min == s.Max {
		return fmt.Sprint(s.Min)
	}
	return fmt.Sprintf("%d to %d", s.Min, s.Max)
}

// lastCall returns how long more nodes are waited for once there are Min. If some are busy, they may be finding out why the round has
// failed, which takes up to probeTimeout.
func (s *State) lastCall(busy []Candidate) time.Duration {
	if len(busy) > 0 && s.Last.probes() && (s.charged() || len(s.Over.Apart) > 0) {
		return max(s.LastCall, probeTimeout)
	}
	return s.LastCall
}

// missing says who of the last round is gone: "; a and b are gone".
func (s *State) missing() string {
	if s.Last == nil {
		return ""
	}
	var gone []Candidate
	for _, m := range s.Last.Members {
		if _, found := s.here[m.Key]; !found {
			gone = append(gone, m)
		}
	}
	return clause(gone, "is gone", "are gone")
}

// ending says who still is: "; a is ending its workers".
func ending(busy []Candidate) string {
	return clause(busy, "is ending its workers", "are ending their workers")
}

// clause says what the nodes do, if there are any.
func clause(nodes []Candidate, does, do string) string {
	switch len(nodes) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; %s %s", nodes[0].name(), does)
	case 2:
		return fmt.Sprintf("; %s and %s %s", nodes[0].name(), nodes[1].name(), do)
	default:
		return fmt.Sprintf("; %s, %s and %d more %s", nodes[0].name(), nodes[1].name(), len(nodes)-2, do)
	}
}

// name is what people call the node.
func (c Candidate) name() string { return c.Node.Name() }
