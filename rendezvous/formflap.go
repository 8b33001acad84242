package rendezvous

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Flap is a host that was lost soon after it had come, several times in a row. It is kept out of rounds for a while,
// unless they cannot do without it: every time that it comes and goes, the workers of all others start again.
//
// Losses are counted from one round document to the next, and time as the leaders see it, by none but their own clocks.
// One that takes over does not know how old the round is, and begins with 0.
type Flap struct {
	Host   string        `json:"host"`
	Losses int           `json:"losses"` // the last ones in a row
	Since  time.Duration `json:"since"`  // from the last one until the round formed
}

const (
	freeLosses = 2  // for which a host is not kept out
	doublings  = 4  // of the time for which it is
	flapsLimit = 64 // on record
)

// soon is how long after a round has formed the loss of a host is a sign of something.
func (r Rules) soon() time.Duration { return 4 * r.LastCall }

// ban is for how long a host is kept out after so many losses.
func (r Rules) ban(losses int) time.Duration {
	if losses <= freeLosses {
		return 0
	}
	return r.LastCall << min(losses-freeLosses-1, doublings)
}

// memory is how long a host must have been away for its losses to be forgotten.
func (r Rules) memory(losses int) time.Duration { return r.ban(losses) + r.LastCall<<doublings }

// lost are the hosts of members that are gone, if that is soon.
func (s *Situation) lost() (hosts []string) {
	if s.Age >= s.soon() {
		return nil
	}
	here := s.here()
	for _, m := range s.Last.Members {
		if _, found := here[m.Key]; !found && s.left(m) == nil && !slices.Contains(hosts, m.Node.Host) && len(hosts) < flapsLimit {
			hosts = append(hosts, m.Node.Host)
		}
	}
	return hosts
}

// flapsNow are those of the last round as they are now. When it is over, a host that was in it begins anew, unless it was
// lost with it.
func (s *Situation) flapsNow() (flaps []Flap) {
	var lost []string
	stayed := make(map[string]bool)
	if s.Over != nil {
		lost = s.Over.Lost
		for _, m := range s.Last.Members {
			stayed[m.Node.Host] = true
		}
	}
	losses := make(map[string]int)
	for _, f := range s.Last.Flaps {
		losses[f.Host] = f.Losses
		f.Since += s.Age
		if !stayed[f.Host] && f.Since < s.memory(f.Losses) {
			flaps = append(flaps, f)
		}
	}
	for _, host := range lost {
		flaps = append(flaps, Flap{Host: host, Losses: losses[host] + 1})
	}
	slices.SortStableFunc(flaps, func(a, b Flap) int { return cmp.Compare(b.Losses, a.Losses) })
	return flaps[:min(flapsLimit, len(flaps))]
}

// banned is for how long a node is kept out, and for what; 0: it is not. Who was in the last round is not.
func (s *Situation) banned(c Candidate) (time.Duration, Flap) {
	if _, member := s.ranks[c.Key]; member {
		return 0, Flap{}
	}
	i := slices.IndexFunc(s.flaps, func(f Flap) bool { return f.Host == c.Node.Host })
	if i < 0 {
		return 0, Flap{}
	}
	return max(0, s.ban(s.flaps[i].Losses)-s.flaps[i].Since), s.flaps[i]
}

// cool waits until the first of those who are kept out may come in.
func (s *Situation) cool(what string, out []Candidate) Decision {
	d := Decision{Stage: Stage{Round: s.Last.ID}}
	for _, c := range out {
		if left, flap := s.banned(c); d.After == 0 || left < d.After {
			d.Wait, d.Then, d.After = fmt.Sprintf("%s; host %s was lost %d times in a row", what, flap.Host, flap.Losses), "it is let in again", left
		}
	}
	return d
}
