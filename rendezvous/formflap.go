package rendezvous

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Flap is a host that left soon after it joined, several times in a row: it was lost, it left, or it never took part. Or a round ended for
// it, and it left before the next one formed. The host is kept out of rounds for a while, unless they need it, because the workers of all
// other nodes restart every time that it joins and leaves. If many newcomers in a row leave soon, on any hosts, all newcomers are kept out
// in this way.
//
// Losses are counted from one round document to the next. Leaders measure time only with their own clocks. A new leader
// does not know how old the round is, and begins with 0.
type Flap struct {
	Host   string        `json:"host"`   // empty: any newcomer's
	Losses int           `json:"losses"` // the last ones in a row
	Since  time.Duration `json:"since"`  // from the last one until the round formed
}

const (
	freeLosses = 2  // for which a host is not kept out
	freeRounds = 8  // that newcomers may cost in a row before all are kept out
	doublings  = 4  // of the time for which they are
	flapsLimit = 64 // on record
)

// free is how many losses have no consequences.
func (f Flap) free() int {
	if f.Host == "" {
		return freeRounds
	}
	return freeLosses
}

// soon reports whether the last round is so young that the loss of a host counts.
func (s *State) soon() bool { return s.Age < 4*s.LastCall }

// ban returns how long hosts are kept out.
func (r Rules) ban(f Flap) time.Duration {
	if f.Losses <= f.free() {
		return 0
	}
	return r.LastCall << min(f.Losses-f.free()-1, doublings)
}

// retention is how long a host must have been away for its losses to be forgotten.
func (r Rules) retention(f Flap) time.Duration { return r.ban(f) + r.LastCall<<doublings }

// fresh reports whether a member came when the job already had a round, and has not stayed for long.
func (s *State) fresh(key string) bool {
	soon := s.soon()
	if s.Over != nil {
		soon = s.Over.Soon
	}
	return s.Last.New[key] && soon
}

// unfit returns a newcomer whose worker has failed, and asks for no restart. It may have another program than the others, or other data. It
// does not end a job that ran without it.
func (s *State) unfit() (m Candidate, f *Failure) {
	for _, r := range s.failures {
		if r.Failure.Final && s.fresh(r.Key) {
			return s.Last.Members[s.nodeRanks[r.Key]], r.Failure
		}
	}
	return m, nil
}

// dropUnfit ends the round because of an unfit newcomer, which leaves when it learns that.
func (s *State) dropUnfit(m Candidate, f *Failure) Decision {
	d := s.drop(m, fmt.Sprintf("%s; it asks for no restart: the job goes on without newcomer %s", f, m.name()), f.Code())
	if d.Over != nil {
		d.Over.Failure = f
	}
	return d
}

// newcomers returns the members that came when the job already had a round, and have not stayed for long.
func (s *State) newcomers(members []Candidate) map[string]bool {
	if s.Last == nil {
		return nil
	}
	fresh := make(map[string]bool)
	for _, m := range members {
		if _, stays := s.nodeRanks[m.Key]; !stays || s.fresh(m.Key) {
			fresh[m.Key] = true
		}
	}
	return fresh
}

// drop ends the round because m, and perhaps others, are no longer in it. This uses up no restart, unless the job needs
// newcomers and has had too many that did not stay.
func (s *State) drop(m Candidate, why string, code int) Decision {
	d := s.end(why)
	d.Over.Lost = s.lost(m)
	n := s.losses("")
	if !slices.Contains(d.Over.Lost, "") || n < freeRounds || s.enough(0) {
		return d
	}
	return s.charge(d, fmt.Sprintf("it is the newcomer number %d in a row that did not stay", n+1), code)
}

// charge makes the end of the round use up a restart, after too many that did not. If none is left, the job ends with code. count
// returns how many losses there were.
func (s *State) charge(d Decision, count string, code int) Decision {
	why := d.Over.Why + "; " + count
	if s.Last.Restarts >= s.MaxRestarts {
		return Decision{Close: &Outcome{Code: code, Reason: why}}
	}
	d.Over.Restarts++
	d.Over.Why = fmt.Sprintf("%s; restart %d of %d", why, d.Over.Restarts, s.MaxRestarts)
	return d
}

// losses returns the recorded losses.
func (s *State) losses(host string) int {
	if i := slices.IndexFunc(s.flaps, func(f Flap) bool { return f.Host == host }); i >= 0 {
		return s.flaps[i].Losses
	}
	return 0
}

// lost returns the hosts of members that are gone, and of some more members, if the round ended soon after it began: see soon.
func (s *State) lost(more ...Candidate) (hosts []string) {
	if !s.soon() {
		return nil
	}
	add := func(host string) {
		if !slices.Contains(hosts, host) && len(hosts) < flapsLimit {
			hosts = append(hosts, host)
		}
	}
	for _, c := range s.Last.Members {
		goes := slices.ContainsFunc(more, func(m Candidate) bool { return m.Key == c.Key })
		if !goes && !s.isGone(c) || s.succeeded[c.Key] {
			continue
		}
		if s.Last.New[c.Key] {
			add("")
		}
		add(c.Node.Host)
	}
	return hosts
}

// newHosts returns the hosts of the newcomers among nodes, each once.
func (s *State) newHosts(nodes []Candidate) (hosts []string) {
	for _, n := range nodes {
		_, member := s.nodeRanks[n.Key]
		if !member && !slices.Contains(hosts, n.Node.Host) {
			hosts = append(hosts, n.Node.Host)
		}
	}
	return hosts
}

// vanished returns the hosts whose newcomers ended the last round, and have all gone since. These newcomers have not been in a round. So they do
// not count as newcomers that did not stay: after many of those, the loss of another one costs a restart.
func (s *State) vanished() (hosts []string) {
	if !s.Settled {
		return nil
	}
	left := s.newHosts(s.Nodes)
	return slices.DeleteFunc(slices.Clone(s.Over.NewHosts), func(host string) bool { return slices.Contains(left, host) })
}

// flapsNow returns the flaps of the last round as they are now. When it is over, a host that was in it begins at 0 again,
// unless it was lost with it, or the round was too short to tell.
func (s *State) flapsNow() (flaps []Flap) {
	var lost []string
	stayed := make(map[string]bool)
	if s.Over != nil {
		lost = slices.Concat(s.Over.Lost, s.vanished())
		for _, m := range s.Last.Members {
			stayed[m.Node.Host] = !s.Over.Soon
		}
	}
	losses := make(map[string]int)
	for _, f := range s.Last.Flaps {
		f.Since += s.Age
		if f.Since >= s.retention(f) {
			continue
		}
		losses[f.Host] = f.Losses
		if !stayed[f.Host] && !slices.Contains(lost, f.Host) {
			flaps = append(flaps, f)
		}
	}
	for _, host := range lost {
		flaps = append(flaps, Flap{Host: host, Losses: losses[host] + 1})
	}
	slices.SortStableFunc(flaps, func(a, b Flap) int { return cmp.Compare(b.Losses, a.Losses) })
	return flaps[:min(flapsLimit, len(flaps))]
}

// banned returns how long a node is kept out, and why; 0: it is not. A member of the last round is not kept out, unless the round
// ended because others could not reach it.
func (s *State) banned(c Candidate) (longest time.Duration, why Flap) {
	if _, member := s.nodeRanks[c.Key]; member && (s.Over == nil || !slices.Contains(s.Over.Apart, c.Key)) {
		return 0, Flap{}
	}
	for _, f := range s.flaps {
		if left := s.ban(f) - f.Since; left > longest && (f.Host == c.Node.Host || f.Host == "") {
			longest, why = left, f
		}
	}
	return longest, why
}

// cool waits until the first of the nodes that are kept out may come in.
func (s *State) cool(what string, out []Candidate) Decision {
	d := Decision{Stage: Stage{Round: s.Last.ID}}
	for _, c := range out {
		left, flap := s.banned(c)
		if d.After > 0 && left >= d.After {
			continue
		}
		d.After = left
		if d.Wait, d.Then = fmt.Sprintf("%s; host %s was lost %d times in a row", what, flap.Host, flap.Losses), "it is let in again"; flap.Host == "" {
			d.Wait, d.Then = fmt.Sprintf("%s; %d newcomers in a row did not stay", what, flap.Losses), "others are let in again"
		}
	}
	return d
}
