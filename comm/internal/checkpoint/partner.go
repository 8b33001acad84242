package checkpoint

import (
	"cmp"
	"slices"
)

// partnersOf returns the partner of each rank, which keeps the copies of its parts. nodes says where ranks are. Each rank is the partner of one other,
// on another node as far as that is possible. A rank that is alone is its own partner.
func partnersOf(nodes []string) []int {
	n, first, count := len(nodes), make(map[string]int), make(map[string]int)
	order, largest := make([]int, n), 0
	for rank, node := range nodes {
		if count[node] == 0 {
			first[node] = rank
		}
		order[rank] = rank
		count[node]++
		largest = max(largest, count[node])
	}
	// With the ranks of each node in a row, it takes a step as long as the longest row to leave every one of them.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(first[nodes[a]], first[nodes[b]]) })
	if largest == n {
		largest = 1
	}
	partners := make([]int, n)
	for i, rank := range order {
		partners[rank] = order[(i+largest)%n]
	}
	return partners
}
