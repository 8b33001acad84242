package rendezvous

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Unreachable says that a node cannot reach another one. The agent of the first one has found that out, perhaps since a worker
// of its has.
type Unreachable struct {
	From, To string // Candidate.Key
	Addr     string // at which To was called
}

// gaps are, by Key, the nodes with which each cannot be in one round: one of the two cannot reach the other.
type gaps map[string]map[string]bool

func gapsOf(list []Unreachable) gaps {
	if len(list) == 0 {
		return nil
	}
	g := make(gaps)
	add := func(a, b string) {
		if g[a] == nil {
			g[a] = make(map[string]bool)
		}
		g[a][b] = true
	}
	for _, u := range list {
		if u.From != u.To {
			add(u.From, u.To)
			add(u.To, u.From)
		}
	}
	return g
}

// count is with how many of those in a set c cannot be.
func (g gaps) count(c Candidate, set map[string]bool) (n int) {
	for other := range g[c.Key] {
		if set[other] {
			n++
		}
	}
	return n
}

func keysOf(nodes []Candidate) map[string]bool {
	set := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		set[n.Key] = true
	}
	return set
}

// first are the nodes in the order in which they stay: who was in the last round and is no newcomer, by rank, then who has been
// here the longest.
func (s *Situation) first(nodes []Candidate) []Candidate {
	place := func(c Candidate) int {
		if s.Last != nil && s.Last.New[c.Key] {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(nodes), func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(s.ranks.of(a), s.ranks.of(b)), older(a, b))
	})
}

// connected leaves out of the nodes whoever fewer of them reach, until all that are kept reach each other.
func (s *Situation) connected(nodes []Candidate) (kept, out []Candidate) {
	if len(s.gaps) == 0 {
		return nodes, nil
	}
	set := keysOf(nodes)
	kept = s.first(nodes)
	for {
		worst, most := 0, 0
		for i, c := range kept {
			if n := s.gaps.count(c, set); n > 0 && n >= most {
				worst, most = i, n
			}
		}
		if most == 0 {
			break
		}
		out = append(out, kept[worst])
		delete(set, kept[worst].Key)
		kept = slices.Delete(kept, worst, worst+1)
	}
	out = s.first(out)
	return slices.Concat(kept, s.fitting(&out, set)), out
}

// fitting takes from the nodes, in their order, those that can be in one round with all of the set, and adds them to it.
func (s *Situation) fitting(nodes *[]Candidate, set map[string]bool) (fit []Candidate) {
	*nodes = slices.DeleteFunc(*nodes, func(c Candidate) bool {
		fits := s.gaps.count(c, set) == 0
		if fits {
			set[c.Key] = true
			fit = append(fit, c)
		}
		return fits
	})
	return fit
}

// pick takes at most limit of those who wait, of whom all reach each other. Members of the last round come before newcomers, and
// those who are to be kept out come in only if there would be too few.
func (s *Situation) pick(welcome, out []Candidate, limit int) []Candidate {
	var members, others []Candidate
	for _, c := range welcome {
		if _, member := s.ranks[c.Key]; member {
			members = append(members, c)
		} else {
			others = append(others, c)
		}
	}
	chosen, _ := s.connected(members)
	chosen = choose(chosen, s.ranks, limit)
	add := func(nodes []Candidate, limit int) {
		set := keysOf(chosen)
		nodes = choose(nodes, s.ranks, len(nodes))
		chosen = append(chosen, s.fitting(&nodes, set)...)
		chosen = chosen[:min(len(chosen), limit)]
	}
	add(others, limit)
	if len(chosen) < s.Min {
		add(out, s.Min) // better than none
	}
	if len(chosen) < s.Min { // members may be in the way of more others
		if all, _ := s.connected(slices.Concat(welcome, out)); len(all) >= s.Min {
			return choose(all, s.ranks, limit)
		}
	}
	return chosen
}

// unreached are who waits, and cannot be in one round with those that are chosen.
func (s *Situation) unreached(waiting, chosen []Candidate) (left []Candidate) {
	set := keysOf(chosen)
	for _, c := range waiting {
		if !set[c.Key] && s.gaps.count(c, set) > 0 {
			left = append(left, c)
		}
	}
	return left
}

// between are those of what is unreachable that are between two of the nodes.
func (s *Situation) between(nodes []Candidate) (list []Unreachable) {
	if len(s.gaps) == 0 {
		return nil
	}
	set := keysOf(nodes)
	for _, u := range s.Unreachable {
		if u.From != u.To && set[u.From] && set[u.To] {
			list = append(list, u)
		}
	}
	return list
}

// divided follows from members who cannot reach each other. That is free of charge, and of the hosts that are left out it is on
// record, as if they were lost: so they wait longer and longer, and a job that cannot do without them has a limit to it.
func (s *Situation) divided() (d Decision, is bool) {
	if len(s.gaps) == 0 {
		return d, false
	}
	here := s.here()
	succeeded, _ := s.reported()
	var members []Candidate
	for _, m := range s.Last.Members {
		if now, found := here[m.Key]; found && !succeeded[m.Key] {
			members = append(members, now)
		}
	}
	_, out := s.connected(members)
	if len(out) == 0 {
		return d, false
	}
	d = s.end(s.explain(s.between(members)))
	d.Over.Lost = s.lost(out...)
	times := 0
	for _, host := range d.Over.Lost {
		times = max(times, s.losses(host)+1)
	}
	if times > freeRounds && len(s.Nodes)-len(out) < s.Min {
		return s.charge(d, fmt.Sprintf("it is the time number %d in a row", times), codeUnformed), true
	}
	return d, true
}

// gapsTold is how many pairs are named; of the others there is their number.
const gapsTold = 3

// explain names pairs, each once, and where one was called: "a cannot reach b at 10.0.0.2:4711".
func (s *Situation) explain(list []Unreachable) string {
	names := make(map[string]string)
	for _, n := range s.Nodes {
		names[n.Key] = n.name()
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Unreachable) int {
		return cmp.Or(cmp.Compare(names[a.From], names[b.From]), cmp.Compare(names[a.To], names[b.To]), cmp.Compare(a.Addr, b.Addr))
	})
	told := make(map[[2]string]bool)
	var parts []string
	for _, u := range sorted {
		if !told[[2]string{u.To, u.From}] && !told[[2]string{u.From, u.To}] {
			told[[2]string{u.From, u.To}] = true
			parts = append(parts, fmt.Sprintf("%s cannot reach %s at %s", names[u.From], names[u.To], u.Addr))
		}
	}
	if more := len(parts) - gapsTold; more > 0 {
		parts = append(parts[:gapsTold], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// apartNow says who of the nodes cannot reach each other, and what would help: "; a cannot reach b at ..."; empty: all can.
func (s *Situation) apartNow(nodes []Candidate) string {
	list := s.between(nodes)
	if len(list) == 0 {
		return ""
	}
	return "; " + s.explain(list) + " (see to the network and the firewalls between them, or to --local-addr)"
}

// without says why a round has to do without some who wait.
func (s *Situation) without(left, chosen []Candidate, why string) string {
	if len(left) == 0 {
		return why
	}
	untold := func(c Candidate) bool {
		return !strings.Contains(why, c.name()+" cannot reach ") && !strings.Contains(why, " cannot reach "+c.name()+" at ")
	}
	if slices.ContainsFunc(left, untold) {
		why += "; " + s.explain(s.between(slices.Concat(left, chosen)))
	}
	var names []string
	for _, c := range left[:min(len(left), gapsTold)] {
		names = append(names, c.name())
	}
	if more := len(left) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s; going on without %s until they reach each other (see to the network and the firewalls between them, or to --local-addr)",
		why, strings.Join(names, ", "))
}
