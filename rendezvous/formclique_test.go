package rendezvous

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pairsApart returns from whom each of n nodes is apart, if is says which pairs are.
func pairsApart(n int, is func(i, j int) bool) []nodeSet {
	apart := make([]nodeSet, n)
	for i := range n {
		for j := range i {
			if is(i, j) {
				apart[i] |= 1 << j
				apart[j] |= 1 << i
			}
		}
	}
	return apart
}

// inGroup reports whether no two of a set are apart.
func inGroup(apart []nodeSet, set nodeSet) bool {
	for i, from := range apart {
		if set.without(i) != set && set&from != 0 {
			return false
		}
	}
	return true
}

// TestLargestGroup compares with the best of all sets. Of several it is the smallest as a number, which is without the last nodes.
func TestLargestGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 10).Draw(t, "nodes")
		often := rapid.IntRange(1, 10).Draw(t, "often")
		apart := pairsApart(n, func(i, j int) bool { return rapid.IntRange(1, 10).Draw(t, fmt.Sprint(i, j)) <= often })
		var want nodeSet
		for set := range nodeSet(1) << n {
			if set.size() > want.size() && inGroup(apart, set) {
				want = set
			}
		}
		if got := largestGroup(apart); got != want {
			t.Fatalf("%b is apart: got %b, want %b", apart, got, want)
		}
	})
}

// TestLargestGroupIsFoundSoon: the search does not hold up the leader, whatever nodes say about whom they cannot reach.
func TestLargestGroupIsFoundSoon(t *testing.T) {
	graphs := map[string]func(i, j int) bool{
		"nobody":    func(int, int) bool { return false },
		"all":       func(int, int) bool { return true },
		"two sides": func(i, j int) bool { return i%2 != j%2 },
		"path":      func(i, j int) bool { return i == j+1 },
		"grid":      func(i, j int) bool { return i == j+6 || i == j+1 && i%6 != 0 },
		"circles":   func(i, j int) bool { return i/5 == j/5 && (i-j == 1 || i-j == 4) },
	}
	for size := 2; size <= 8; size++ {
		graphs[fmt.Sprint("groups of ", size)] = func(i, j int) bool { return i/size == j/size }
	}
	for d := 1; d <= 8; d++ {
		graphs[fmt.Sprint("neighbours up to ", d)] = func(i, j int) bool { return i-j <= d || i-j >= cliqueLimit-d }
	}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		often := 0.02 + 0.6*random.Float64()
		graphs[fmt.Sprintf("random %d: %.2f", seed, often)] = func(int, int) bool { return random.Float64() < often }
	}
	longest := time.Duration(0)
	for name, is := range graphs {
		apart := pairsApart(cliqueLimit, is)
		var took []time.Duration
		for range 3 {
			begun := time.Now()
			if !inGroup(apart, largestGroup(apart)) {
				t.Errorf("%s: two of the group are apart", name)
			}
			took = append(took, time.Since(begun))
		}
		best := slices.Min(took)
		longest = max(longest, best)
		if best > 50*time.Millisecond {
			t.Errorf("%s: it takes %v", name, best)
		}
	}
	t.Logf("at most %v", longest)
}
