package checkpoint

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestBounds: the ranges that several ranks send make up the whole.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, n := rapid.IntRange(0, 1<<30).Draw(t, "total"), rapid.IntRange(1, maxSources).Draw(t, "ranges")
		if bound(total, 0, n) != 0 || bound(total, n, n) != total {
			t.Fatalf("%d bytes begin at %d and end at %d", total, bound(total, 0, n), bound(total, n, n))
		}
		for i := range n {
			if bound(total, i, n) > bound(total, i+1, n) {
				t.Fatalf("range %d of %d begins after its end", i, n)
			}
		}
	})
}

func TestSources(t *testing.T) {
	ten := agreement{holders: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, mostFrom: 8}
	two, one := ten, ten
	two.mostFrom, one.mostFrom = 2, 1
	for _, c := range []struct {
		a     agreement
		bytes int
		want  []int
	}{
		{agreement{holders: []int{3}, mostFrom: 8}, 1 << 30, []int{3}},
		{ten, 1000, []int{0}},
		{ten, 2*minShare - 1, []int{0}},
		{ten, 2 * minShare, []int{0, 5}},
		{ten, 1 << 30, []int{0, 2, 5, 7}},
		{agreement{holders: []int{1, 4}, mostFrom: 8}, 1 << 30, []int{1, 4}},
		{two, 1 << 30, []int{0, 5}},
		{one, 1 << 30, []int{0}},
	} {
		if got := c.a.sources(c.bytes); !slices.Equal(got, c.want) {
			t.Errorf("sources of %v for %d bytes are %v, want %v", c.a.holders, c.bytes, got, c.want)
		}
	}
}
