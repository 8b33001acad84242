package rendezvous

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Loss is on record for a host whose node has joined a job that had a round already, and within newTime has left,
// was lost or could not start its workers. Or a round ended for the node, and it was gone before the next one formed.
// Because the workers of all other nodes restart every time that a node joins and leaves, the host is kept out for a
// while: see excludedFor.
//
// Leaders measure time only with their own clocks. A new leader does not know how old the round is, and begins with 0.
type Loss struct {
	Host  string        `json:"host"`
	Times int           `json:"times"` // in a row: the host's node has not stayed in between
	Since time.Duration `json:"since"` // from the last one until the round formed
}

const (
	newTime     = time.Minute // for which a node that has joined is a newcomer
	firstTime   = 30 * time.Second
	longestTime = 10 * time.Minute
	lossesLimit = 64 // on record
)

// exclusion is for how long the host is kept out after its last loss.
func (l Loss) exclusion() time.Duration { return min(firstTime<<min(l.Times-1, 10), longestTime) }

// age is that of the last round, or how old it was when it ended.
func (s *State) age() time.Duration {
	if s.Over != nil {
		return s.Over.Age
	}
	return s.Age
}

// isNew reports whether a member is a newcomer: it joined when the job already had a round, and has not stayed for
// newTime.
func (s *State) isNew(key string) bool { return s.Last.New[key] > s.age() }

// newcomers returns for how long members of the next round will be newcomers. One that others could not reach is a
// newcomer when it is back.
func (s *State) newcomers(members []Candidate) map[string]time.Duration {
	if s.Last == nil {
		return nil
	}
	left := make(map[string]time.Duration)
	for _, m := range members {
		_, stays := s.nodeRanks[m.Key]
		if !stays || slices.Contains(s.Over.Apart, m.Key) {
			left[m.Key] = newTime
		} else if more := s.Last.New[m.Key] - s.Age; more > 0 {
			left[m.Key] = more
		}
	}
	return left
}

// unfit returns a newcomer whose worker has failed, and asks for no restart. It may have another program than the
// others, or other data. It does not end a job that ran without it.
func (s *State) unfit() (m Candidate, f *Failure) {
	for _, r := range s.failures {
		if r.Failure.Final && s.isNew(r.Key) {
			return s.Last.Members[s.nodeRanks[r.Key]], r.Failure
		}
	}
	return m, nil
}

// dropUnfit ends the round because of an unfit newcomer, which leaves when it learns that.
func (s *State) dropUnfit(m Candidate, f *Failure) Decision {
	d := s.drop(m, fmt.Sprintf("%s; it asks for no restart: the job goes on without newcomer %s", f, m.name()))
	d.Over.Failure = f
	return d
}

// drop ends the round because m, and perhaps others, are no longer in it. This uses up no restart.
func (s *State) drop(m Candidate, why string) Decision {
	d := s.end(why)
	d.Over.Lost = s.lost(m)
	return d
}

// lost returns the hosts of newcomers that are gone, or are among more.
func (s *State) lost(more ...Candidate) (hosts []string) {
	for _, m := range s.Last.Members {
		goes := s.isGone(m) || slices.ContainsFunc(more, func(c Candidate) bool { return c.Key == m.Key })
		if goes && s.isNew(m.Key) && !s.succeeded[m.Key] && !slices.Contains(hosts, m.Node.Host) {
			hosts = append(hosts, m.Node.Host)
		}
	}
	return hosts[:min(len(hosts), lossesLimit)]
}

// newHosts returns the hosts of the newcomers among nodes, each once.
func (s *State) newHosts(nodes []Candidate) (hosts []string) {
	for _, n := range nodes {
		_, member := s.nodeRanks[n.Key]
		if !member && !slices.Contains(hosts, n.Node.Host) {
			hosts = append(hosts, n.Node.Host)
		}
	}
	return hosts[:min(len(hosts), lossesLimit)]
}

// vanished returns the hosts whose newcomers ended the last round, and have all gone since.
func (s *State) vanished() (hosts []string) {
	if !s.Settled {
		return nil
	}
	left := s.newHosts(s.Nodes)
	return slices.DeleteFunc(slices.Clone(s.Over.NewHosts), func(host string) bool { return slices.Contains(left, host) })
}

// lossesNow returns the losses on record as they are now. They are forgotten if a node of the host has stayed for
// newTime, or if the host has been let in again for longestTime.
func (s *State) lossesNow() (losses []Loss) {
	var lost []string
	stayed := make(map[string]bool)
	if s.Over != nil {
		lost = slices.Concat(s.Over.Lost, s.vanished())
		for _, m := range s.Last.Members {
			stayed[m.Node.Host] = stayed[m.Node.Host] || s.Last.New[m.Key] > 0 && !s.isNew(m.Key)
		}
	}
	times := make(map[string]int)
	for _, l := range s.Last.Losses {
		l.Since += s.Age
		switch {
		case stayed[l.Host] || l.Since >= l.exclusion()+longestTime:
		case slices.Contains(lost, l.Host):
			times[l.Host] = l.Times
		default:
			losses = append(losses, l)
		}
	}
	for _, host := range lost {
		losses = append(losses, Loss{Host: host, Times: times[host] + 1, Since: s.sinceOver()})
	}
	slices.SortStableFunc(losses, func(a, b Loss) int { return cmp.Compare(b.Times, a.Times) })
	return losses[:min(lossesLimit, len(losses))]
}

// sinceOver is for how long the leader has known that the round is over.
func (s *State) sinceOver() time.Duration {
	if s.Age < s.Over.Age { // it is a new leader
		return s.Age
	}
	return s.Age - s.Over.Age
}

// excludedFor returns for how long a node is still kept out; 0: it is not. A member of the last round is not, unless the
// round ended because others could not reach it.
func (s *State) excludedFor(c Candidate) time.Duration {
	if _, member := s.nodeRanks[c.Key]; member && (s.Over == nil || !slices.Contains(s.Over.Apart, c.Key)) {
		return 0
	}
	for _, l := range s.losses {
		if l.Host == c.Node.Host {
			return max(0, l.exclusion()-l.Since)
		}
	}
	return 0
}

// untilLetIn makes d end when the first of the nodes that are kept out gets in, if that is sooner.
func (s *State) untilLetIn(d Decision, out []Candidate) Decision {
	for _, c := range out {
		if left := s.excludedFor(c); d.After == 0 || left < d.After {
			d.Then, d.After = "host "+c.Node.Host+" is let in again", left
		}
	}
	return d
}

// outNote says which hosts are kept out: "; host a is kept out, as its node did not stay"; empty: none is.
func outNote(out []Candidate) string {
	var hosts []string
	for _, c := range out {
		if !slices.Contains(hosts, c.Node.Host) {
			hosts = append(hosts, c.Node.Host)
		}
	}
	switch len(hosts) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; host %s is kept out, as its node did not stay", hosts[0])
	default:
		return fmt.Sprintf("; host %s and %d more are kept out, as their nodes did not stay", hosts[0], len(hosts)-1)
	}
}
