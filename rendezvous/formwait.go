package rendezvous

import (
	"fmt"
	"slices"
	"time"
)

// A Stage is what a leader waits for. The stages of two rounds differ.
type Stage struct {
	Round int
	For   Awaited
}

// Awaited is what a Stage waits for.
type Awaited int

// What leaders wait for. State.wait, untilLetIn and waitForCertainty return it in a Stage, with the reason that
// people see.
const (
	News      Awaited = iota // a change in the job, or that a host is let in again: see untilLetIn
	Enough                   // Min nodes; JoinTimeout ends it
	LastCall                 // nodes beyond Min; State.lastCall ends it
	Newcomers                // more newcomers for a round that runs; LastCall ends it
	Cause                    // reports of what caused a failure; lossTimeout or causeTimeout ends it
)

// expired reports whether the leader has waited in this stage for limit.
func (s *State) expired(round int, what Awaited, limit time.Duration) bool {
	return s.waited(round, what) >= limit
}

func (s *State) waited(round int, what Awaited) time.Duration {
	if s.Stage != (Stage{round, what}) {
		return 0
	}
	return s.Waited
}

func (s *State) wait(round int, what Awaited, limit time.Duration, reason, then string) Decision {
	return Decision{Wait: reason, Then: then, Stage: Stage{round, what}, After: limit - s.waited(round, what)}
}

// Reason returns Wait with the remaining time.
func (d Decision) Reason() string {
	if d.After == 0 {
		return d.Wait
	}
	return fmt.Sprintf("%s; %s in %v", d.Wait, d.Then, d.After.Round(time.Second))
}

// joining returns the nodes that wait for the next round, and those of them that are kept out. A node that asks for
// the rank of another is neither.
func (s *State) joining() (welcome, out []Candidate) {
	holders := s.holders()
	for _, n := range s.Nodes {
		if !n.Joining || s.got(n) {
			continue
		}
		if holder, asked := holders[n.Node.NodeRank]; asked && holder.Key != n.Key {
			continue
		}
		if s.excludedFor(n) > 0 {
			out = append(out, n)
		} else {
			welcome = append(welcome, n)
		}
	}
	return welcome, out
}

// busy returns the nodes that are not done with the last round.
func (s *State) busy() (busy []Candidate) {
	for _, n := range s.Nodes {
		if _, member := s.nodeRanks[n.Key]; member && s.got(n) {
			busy = append(busy, n)
		}
	}
	return busy
}

// lateNow returns the nodes that are not done with the last round, or with an earlier one, whether or not they stay.
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
	if r, member := s.nodeRanks[n.Key]; member {
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

// lastCall returns how long the leader waits for more nodes once there are Min. If it was a failure that ended the
// round, it waits for busy ones until they would be lost: their machines may have vanished, which was the cause.
func (s *State) lastCall(busy, awaited []Candidate) time.Duration {
	limit := max(s.LastCall, stopTime(awaited))
	if len(busy) > 0 && s.charged() {
		limit = max(limit, s.lossTime())
	}
	return limit
}

// joinTime is how long an agent may take to join again when its workers have ended.
const joinTime = 5 * time.Second

// stopTime returns how long the nodes may take to end their workers and to join again.
func stopTime(nodes []Candidate) (longest time.Duration) {
	for _, n := range nodes {
		longest = max(longest, n.Node.StopTimeout+joinTime)
	}
	return longest
}

// awaited returns the busy nodes for which the next round waits until they must have ended their workers. If they
// came later, the round would end for them; these workers would have to end too, and so on. There are none if the
// round is full without them.
func (s *State) awaited(busy, welcome, chosen []Candidate, limit int) (list []Candidate) {
	if len(busy) == 0 || len(chosen) == limit {
		return nil
	}
	for _, n := range busy {
		if s.excludedFor(n) == 0 {
			list = append(list, n)
		}
	}
	would := keysOf(s.selectMembers(slices.Concat(welcome, list), limit))
	return slices.DeleteFunc(list, func(n Candidate) bool { return !would[n.Key] })
}

// missing says which nodes of the last round are gone, or about to be: "; a and b are gone; c is leaving".
func (s *State) missing() string {
	if s.Last == nil {
		return ""
	}
	var gone, leaving []Candidate
	for _, m := range s.Last.Members {
		switch {
		case !s.isGone(m):
		case s.leaving[m.Key] && s.left(m) == nil:
			leaving = append(leaving, m)
		default:
			gone = append(gone, m)
		}
	}
	return clause(gone, "is gone", "are gone") + clause(leaving, "is leaving", "are leaving")
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

// name returns the node's name for people.
func (c Candidate) name() string { return c.Node.Name() }
