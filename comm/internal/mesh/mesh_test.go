package mesh

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Every rank is at one place, and counting the places row by row counts the ranks.
func TestArrangeIsRowMajor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "shape")
		names := []string{"a", "b", "c", "d"}[:len(shape)]
		size := 1
		for _, n := range shape {
			size *= n
		}
		for rank := range size {
			axes, err := Arrange(rank, size, shape, names)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for i, a := range axes {
				if a.At < 0 || a.At >= shape[i] || a.Size != shape[i] || a.Name != names[i] {
					t.Fatalf("rank %d: %+v", rank, a)
				}
				count = count*a.Size + a.At
			}
			if count != rank {
				t.Fatalf("rank %d of %v is at %+v", rank, shape, axes)
			}
		}
	})
}

// TestRanksDifferOnlyAlongTheAxes: the ranks along some axes are those whose coordinates on all others are this rank's, in
// row-major order of these axes.
func TestRanksDifferOnlyAlongTheAxes(t *testing.T) {
	shape, names := []int{2, 3, 4}, []string{"a", "b", "c"}
	for rank := range 24 {
		all, err := Arrange(rank, 24, shape, names)
		if err != nil {
			t.Fatal(err)
		}
		part, err := all.Slice("c", "a")
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for c := range 4 {
			for a := range 2 {
				want = append(want, a*12+rank/4%3*4+c)
			}
		}
		if got := part.Ranks(rank); !slices.Equal(got, want) {
			t.Errorf("rank %d: %v, want %v", rank, got, want)
		}
	}
}
