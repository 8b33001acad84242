package rendezvous

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Two nodes are apart if one of them says that it cannot reach the other. They cannot be in one round: the newer one
// waits, or the one that is apart from more nodes. See together.

// An Unreachable says that a node cannot reach another one. Its agent found this out, by itself or after one of its
// workers.
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

// together divides nodes into those that may be in one round, and those that wait, since they are apart from one that
// may be. Of two nodes that are apart, a member that is no newcomer stays, or else the one that is apart from fewer
// nodes, or else the one with the lower rank, or else the one that has been here longer.
func (s *State) together(nodes []Candidate) (stay, wait []Candidate) {
	if len(s.apart) == 0 {
		return nodes, nil
	}
	all, staying := keysOf(nodes), make(map[string]bool)
	newcomer := func(c Candidate) int {
		if _, member := s.nodeRanks[c.Key]; member && s.Last.New[c.Key] == 0 {
			return 0
		}
		return 1
	}
	for _, c := range slices.SortedFunc(slices.Values(nodes), func(a, b Candidate) int {
		fewer := cmp.Compare(s.apart.count(a, all), s.apart.count(b, all))
		return cmp.Or(cmp.Compare(newcomer(a), newcomer(b)), fewer, s.nodeRanks.compare(a, b))
	}) {
		if s.apart.count(c, staying) > 0 {
			wait = append(wait, c)
			continue
		}
		staying[c.Key] = true
		stay = append(stay, c)
	}
	return stay, wait
}

// selectMembers selects at most limit of the waiting nodes. Members of the last round come before newcomers.
func (s *State) selectMembers(waiting []Candidate, limit int) []Candidate {
	stay, _ := s.together(waiting)
	return choose(stay, s.nodeRanks, limit)
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

// membersApart ends the round if members are apart. This uses up no restart.
func (s *State) membersApart() (d Decision, apart bool) {
	var members []Candidate
	for _, m := range s.Last.Members {
		if now, found := s.here[m.Key]; found && !s.succeeded[m.Key] {
			members = append(members, now)
		}
	}
	_, wait := s.together(members)
	if len(wait) == 0 {
		return d, false
	}
	d = s.end(s.describe(s.unreachableAmong(members)))
	d.Over.Lost = s.lost(wait...)
	for _, c := range wait {
		d.Over.Apart = append(d.Over.Apart, c.Key)
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
	// A round that has ended because members were apart says so in why.
	untold := func(c Candidate) bool { return s.Over == nil || !slices.Contains(s.Over.Apart, c.Key) }
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
