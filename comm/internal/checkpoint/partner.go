package checkpoint

import (
	"cmp"
	"slices"
)

// partnersOf returns the partner of each rank: the rank that keeps the copies of its parts. nodes are those of the ranks. Each rank is the partner
// of one other, on another node as far as that is possible. A rank that is alone is its own partner.
func partnersOf(nodes []string) []int {
	n := len(nodes)
	first, count := make(map[string]int), make(map[string]int) // of each node: its first rank, and how many it has
	order, largest := make([]int, n), 0
	for rank, node := range nodes {
		if count[node] == 0 {
			first[node] = rank
		}
		order[rank] = rank
		count[node]++
		largest = max(largest, count[node])
	}
	// In this order the ranks of a node are neighbors. So as many steps as the largest node has ranks lead from each rank to another node, unless
	// that has more than half of them.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(first[nodes[a]], first[nodes[b]]) })
	steps := largest
	if largest == n { // there is one node, and n steps lead back to the rank itself
		steps = 1
	}
	partners := make([]int, n)
	for i, rank := range order {
		partners[rank] = order[(i+steps)%n]
	}
	return partners
}
