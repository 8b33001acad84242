package checkpoint

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPartners(t *testing.T) {
	for nodes, want := range map[string][]int{
		"a": {0}, "aa": {1, 0}, "aab": {2, 0, 1}, "aabb": {2, 3, 0, 1}, "abab": {1, 0, 3, 2}, "aaab": {3, 0, 1, 2}, "abc": {1, 2, 0},
	} {
		if got := partnersOf(strings.Split(nodes, "")); !slices.Equal(got, want) {
			t.Errorf("partners in %s are %v, want %v", nodes, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 12).Draw(t, "nodes")
		count := make(map[string]int)
		for _, node := range nodes {
			count[node]++
		}
		seen, together := make([]bool, len(nodes)), make(map[string]int)
		for rank, partner := range partnersOf(nodes) {
			if seen[partner] || partner == rank && len(nodes) > 1 {
				t.Fatalf("rank %d is the partner of rank %d and of another one", partner, rank)
			}
			if seen[partner] = true; nodes[partner] == nodes[rank] {
				together[nodes[rank]]++
			}
		}
		for node, n := range together { // no more than have to be
			if least := max(2*count[node]-len(nodes), 0); n != least {
				t.Errorf("in %v, %d partners are on node %s: %d have to be", nodes, n, node, least)
			}
		}
	})
}
