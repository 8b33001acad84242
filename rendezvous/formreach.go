package rendezvous

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Two nodes are apart if one of them cannot reach the other. They cannot be in one round, so the members of a round are a clique of
// nodes that reach each other.

// An Unreachable says that a node cannot reach another one. Its agent found this out, by itself or after one of its workers.
type Unreachable struct {
	From, To string // Candidate.Key
	Addr     string // at which To was called
}

// pairs are the nodes that are apart: for each Key, the nodes from which it is apart.
type pairs map[string]map[string]bool

func pairsOf(list []Unreachable) pairs {
	p := make(pairs)
	add := func(a, b string) {
		if p[a] == nil {
			p[a] = make(map[string]bool)
		}
		p[a][b] = true
	}
	for _, u := range list {
		if u.From != u.To {
			add(u.From, u.To)
			add(u.To, u.From)
		}
	}
	return p
}

// count returns from how many nodes of a set c is apart.
func (p pairs) count(c Candidate, set map[string]bool) (n int) {
	for other := range p[c.Key] {
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

// bySeniority sorts nodes; of two nodes that are apart, the first one stays. Members of the last round come first, in the order
// of their node ranks, then the nodes that have been here the longest; but newcomers of the last round come at the end.
func (s *State) bySeniority(nodes []Candidate) []Candidate {
	newcomer := func(c Candidate) int {
		if s.Last != nil && s.Last.New[c.Key] {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(nodes), func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(newcomer(a), newcomer(b)), s.nodeRanks.compare(a, b))
	})
}

// extend moves the nodes that are apart from nobody in set to set, in their order, and returns them.
func (s *State) extend(nodes *[]Candidate, set map[string]bool) (added []Candidate) {
	*nodes = slices.DeleteFunc(*nodes, func(c Candidate) bool {
		fits := s.apart.count(c, set) == 0
		if fits {
			set[c.Key] = true
			added = append(added, c)
		}
		return fits
	})
	return added
}

// selectMembers selects a clique of at most limit of the waiting nodes. Members of the last round come before newcomers. Nodes in
// out, which are kept out, get in only if there would otherwise be too few.
func (s *State) selectMembers(welcome, out []Candidate, limit int) []Candidate {
	var members, others []Candidate
	for _, c := range welcome {
		if _, member := s.nodeRanks[c.Key]; member {
			members = append(members, c)
		} else {
			others = append(others, c)
		}
	}
	chosen, _ := s.clique(members)
	chosen = choose(chosen, s.nodeRanks, limit)
	add := func(nodes []Candidate, limit int) {
		set := keysOf(chosen)
		nodes = choose(nodes, s.nodeRanks, len(nodes))
		chosen = append(chosen, s.extend(&nodes, set)...)
		chosen = chosen[:min(len(chosen), limit)]
	}
	add(others, limit)
	if len(chosen) < s.Min {
		add(out, s.Min) // better than none
	}
	if len(chosen) < s.Min { // members may be in the way of more others
		if all, _ := s.clique(slices.Concat(welcome, out)); len(all) >= s.Min {
			return choose(all, s.nodeRanks, limit)
		}
	}
	return chosen
}

// apartFrom returns the nodes that are here, are not chosen, and are apart from one that is.
func (s *State) apartFrom(here, chosen []Candidate) (left []Candidate) {
	set := keysOf(chosen)
	for _, c := range here {
		if !set[c.Key] && s.apart.count(c, set) > 0 {
			left = append(left, c)
		}
	}
	return left
}

// unreachableAmong returns what is known about pairs of nodes in the list.
func (s *State) unreachableAmong(nodes []Candidate) (list []Unreachable) {
	if len(s.apart) == 0 {
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

// membersApart ends the round if members are apart. This uses up no restart. The hosts that are left out count as lost, so they
// wait longer and longer; if the job needs them, each time after freeRounds in a row costs a restart.
func (s *State) membersApart() (d Decision, apart bool) {
	var members []Candidate
	for _, m := range s.Last.Members {
		if now, found := s.here[m.Key]; found && !s.succeeded[m.Key] {
			members = append(members, now)
		}
	}
	_, out := s.clique(members)
	if len(out) == 0 {
		return d, false
	}
	d = s.end(s.describe(s.unreachableAmong(members)))
	d.Over.Lost = s.lost(out...)
	for _, c := range out {
		d.Over.Apart = append(d.Over.Apart, c.Key)
	}
	times := 0
	for _, host := range d.Over.Lost {
		times = max(times, s.losses(host)+1)
	}
	if times > freeRounds && !s.enough(len(out)) {
		return s.charge(d, fmt.Sprintf("that makes %d times in a row", times), CodeUnformed), true
	}
	return d, true
}

// maxNamed is how many pairs, and how many nodes, are named; the others are only counted.
const maxNamed = 3

// describe names each pair once, with the address: "a cannot reach b at 10.0.0.2:4711".
func (s *State) describe(list []Unreachable) string {
	known := s.Nodes
	if s.Last != nil {
		known = slices.Concat(s.Last.Members, s.Nodes) // a member may be gone
	}
	names := make(map[string]string)
	for _, n := range known {
		names[n.Key] = n.name()
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Unreachable) int {
		return cmp.Or(cmp.Compare(names[a.From], names[b.From]), cmp.Compare(names[a.To], names[b.To]), cmp.Compare(a.Addr, b.Addr))
	})
	listed := make(map[[2]string]bool)
	var parts []string
	for _, u := range sorted {
		if !listed[[2]string{u.To, u.From}] && !listed[[2]string{u.From, u.To}] {
			listed[[2]string{u.From, u.To}] = true
			parts = append(parts, fmt.Sprintf("%s cannot reach %s at %s", names[u.From], names[u.To], u.Addr))
		}
	}
	if more := len(parts) - maxNamed; more > 0 {
		parts = append(parts[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// apartAdvice says what people can do about nodes that are apart.
const apartAdvice = " (check the network and the firewalls between them, or --local-addr)"

// apartNote says which of the nodes are apart, and what would help: "; a cannot reach b at ..."; empty: none are.
func (s *State) apartNote(nodes []Candidate) string {
	list := s.unreachableAmong(nodes)
	if len(list) == 0 {
		return ""
	}
	return "; " + s.describe(list) + apartAdvice
}

// whyWithout adds to the reason for a round that it goes on without the nodes in left, which wait: see apartFrom.
func (s *State) whyWithout(left, chosen []Candidate, why string) string {
	if len(left) == 0 {
		return why
	}
	var parts []string
	if why != "" {
		parts = append(parts, why)
	}
	untold := func(c Candidate) bool {
		return !strings.Contains(why, c.name()+" cannot reach ") && !strings.Contains(why, " cannot reach "+c.name()+" at ")
	}
	if slices.ContainsFunc(left, untold) {
		parts = append(parts, s.describe(s.unreachableAmong(slices.Concat(left, chosen))))
	}
	var names []string
	for _, c := range left[:min(len(left), maxNamed)] {
		names = append(names, c.name())
	}
	if more := len(left) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	parts = append(parts, "going on without "+strings.Join(names, ", ")+" until they reach each other"+apartAdvice)
	return strings.Join(parts, "; ")
}
