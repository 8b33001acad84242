package rendezvous

import (
	"math/bits"
	"slices"
)

// cliqueLimit is for how many nodes that are apart from others the largest group is found of those who all reach each other. Of more
// some are left out before.
const cliqueLimit = 32

// A nodeSet has bit i for node i.
type nodeSet uint32

func (s nodeSet) size() int { return bits.OnesCount32(uint32(s)) }

// without is the set less node i.
func (s nodeSet) without(i int) nodeSet { return s &^ (1 << i) }

// largestGroup is the largest set of nodes of which no two are apart, where apart says from whom each is. Of several it is the one
// without the last node; if none of them has it, or all do, the one before decides, and so on.
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

// groupSize is how many nodes the largest group has within a set. Who is apart from one other at most is in some largest group.
// Otherwise it branches at the node that is apart from the most: without it, or with it and without those.
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

// clique is the largest group of nodes of which no two are apart, and who is not in it, both by seniority. Of several groups it is the
// one without the last node by seniority, see largestGroup.
func (s *Situation) clique(nodes []Candidate) (kept, out []Candidate) {
	if len(s.apart) == 0 {
		return nodes, nil
	}
	set := keysOf(nodes)
	kept = s.bySeniority(nodes)
	for { // too many for largestGroup: who is apart from the most is left out
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
	for _, c := range s.inNoGroup(kept, set) {
		out = append(out, c)
		delete(set, c.Key)
	}
	kept = slices.DeleteFunc(kept, func(c Candidate) bool { return !set[c.Key] })
	out = s.bySeniority(out)
	return s.bySeniority(slices.Concat(kept, s.extend(&out, set))), out
}

// inNoGroup is who of the nodes, which are in the order of seniority, is not in their largest group. set has their keys.
func (s *Situation) inNoGroup(nodes []Candidate, set map[string]bool) (out []Candidate) {
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
