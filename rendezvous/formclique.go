package rendezvous

import (
	"math/bits"
	"slices"
)

// cliqueLimit is the largest number of nodes that largestGroup searches. If more nodes are apart from others, clique first leaves out
// those that are apart from the most.
const cliqueLimit = 32

// A nodeSet has bit i for node i.
type nodeSet uint32

func (s nodeSet) size() int { return bits.OnesCount32(uint32(s)) }

// without is the set less node i.
func (s nodeSet) without(i int) nodeSet { return s &^ (1 << i) }

// largestGroup returns the largest set of nodes of which no two are apart; node i is apart from apart[i]. Of several such sets it
// returns the one without the last node. If that does not decide it, the node before does, and so on.
func largestGroup(apart []nodeSet) nodeSet {
	left := nodeSet(1<<len(apart) - 1)
	want := groupSize(apart, left)
	for i := len(apart) - 1; i >= 0; i-- {
		if left.without(i) != left && groupSize(apart, left.without(i)) == want {
			left = left.without(i)
		}
	}
	return left
}

// groupSize returns how many nodes of a set the largest group has. A node that is apart from one other at most is in one of the
// largest groups. If there is no such node, groupSize branches at the node that is apart from the most: it leaves out this node, or
// all that this node is apart from.
func groupSize(apart []nodeSet, set nodeSet) (size int) {
	for set != 0 {
		worst, most := 0, -1
		for rest := set; rest != 0; {
			i := bits.TrailingZeros32(uint32(rest))
			rest = rest.without(i)
			n := (apart[i] & set).size()
			if n <= 1 {
				worst, most = i, n
				break
			}
			if n > most {
				worst, most = i, n
			}
		}
		with := set.without(worst) &^ apart[worst]
		if most > 1 {
			return size + max(groupSize(apart, set.without(worst)), 1+groupSize(apart, with))
		}
		size, set = size+1, with
	}
	return size
}

// clique returns the largest group of nodes of which no two are apart, and the nodes that are not in it, both by seniority. Of several
// groups it returns the one without the last node by seniority: see largestGroup.
func (s *State) clique(nodes []Candidate) (kept, out []Candidate) {
	if len(s.apart) == 0 {
		return nodes, nil
	}
	set := keysOf(nodes)
	kept = s.bySeniority(nodes)
	for { // while there are too many for largestGroup, leave out who is apart from the most
		worst, most, n := 0, 0, 0
		for i, c := range kept {
			if from := s.apart.count(c, set); from > 0 {
				n++
				if from >= most {
					worst, most = i, from
				}
			}
		}
		if n <= cliqueLimit {
			break
		}
		out = append(out, kept[worst])
		delete(set, kept[worst].Key)
		kept = slices.Delete(kept, worst, worst+1)
	}
	for _, c := range s.outsideGroup(kept, set) {
		out = append(out, c)
		delete(set, c.Key)
	}
	kept = slices.DeleteFunc(kept, func(c Candidate) bool { return !set[c.Key] })
	out = s.bySeniority(out)
	return s.bySeniority(slices.Concat(kept, s.extend(&out, set))), out
}

// outsideGroup returns the nodes that are not in the largest group. nodes are sorted by seniority; set has their keys.
func (s *State) outsideGroup(nodes []Candidate, set map[string]bool) (out []Candidate) {
	var some []Candidate // those who are apart from others
	number := make(map[string]int)
	for _, c := range nodes {
		if s.apart.count(c, set) > 0 {
			number[c.Key] = len(some)
			some = append(some, c)
		}
	}
	apart := make([]nodeSet, len(some))
	for i, c := range some {
		for other := range s.apart[c.Key] {
			if j, has := number[other]; has {
				apart[i] |= 1 << j
			}
		}
	}
	group := largestGroup(apart)
	for i, c := range some {
		if group.without(i) == group {
			out = append(out, c)
		}
	}
	return out
}
