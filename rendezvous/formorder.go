package rendezvous

import (
	"cmp"
	"math"
	"slices"
)

// nodeRanks are the node ranks of a round's members, by key.
type nodeRanks map[string]int

func nodeRanksOf(members []Candidate) nodeRanks {
	r := make(nodeRanks, len(members))
	for i, m := range members {
		r[m.Key] = i
	}
	return r
}

// of returns c's node rank, or a number greater than any.
func (r nodeRanks) of(c Candidate) int {
	if rank, member := r[c.Key]; member {
		return rank
	}
	return math.MaxInt
}

// compare puts a member before any other node, and otherwise the node first that has been here longer.
func (r nodeRanks) compare(a, b Candidate) int {
	return cmp.Or(cmp.Compare(r.of(a), r.of(b)), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Key, b.Key))
}

// choose returns at most limit of the joining nodes: the members of the last round first, then the nodes that have been
// here the longest.
func choose(joining []Candidate, last nodeRanks, limit int) []Candidate {
	chosen := slices.SortedFunc(slices.Values(joining), last.compare)
	return chosen[:min(limit, len(chosen))]
}

// order puts the members of a round into the order of their node ranks. If there are as many as in the last round, or more and none of the
// newcomers asks for a node rank, nodes of that round keep theirs, and the others fill the gaps. Otherwise, and among those others, a node
// that asks for one comes before one that does not; then the node rank in the last round counts, and then who has been here the longest.
func order(members []Candidate, last nodeRanks) []Candidate {
	sorted := slices.SortedFunc(slices.Values(members), func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(asked(a), asked(b)), last.compare(a, b))
	})
	asks := func(m Candidate) bool { _, stays := last[m.Key]; return !stays && asked(m) < len(members) }
	if len(members) < len(last) || len(members) > len(last) && slices.ContainsFunc(members, asks) {
		return sorted
	}
	ranked := make([]Candidate, len(members))
	taken := make([]bool, len(members))
	var others []Candidate
	for _, m := range sorted {
		if r, stays := last[m.Key]; stays {
			ranked[r], taken[r] = m, true
		} else {
			others = append(others, m)
		}
	}
	for r := range ranked {
		if !taken[r] {
			ranked[r], others = others[0], others[1:]
		}
	}
	return ranked
}

// holders returns the nodes that get the node ranks that they ask for, by node rank: if several ask for one, the node that was in the
// last round, or else the oldest.
func (s *State) holders() map[int]Candidate {
	holders := make(map[int]Candidate)
	for _, n := range s.Nodes {
		if n.Node.NodeRank < 0 {
			continue
		}
		if other, taken := holders[n.Node.NodeRank]; !taken || s.nodeRanks.compare(n, other) < 0 {
			holders[n.Node.NodeRank] = n
		}
	}
	return holders
}

// asked returns the node rank that c asks for, or a number greater than any.
func asked(c Candidate) int {
	if c.Node.NodeRank < 0 {
		return math.MaxInt
	}
	return c.Node.NodeRank
}
