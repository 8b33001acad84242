package cost

import (
	"slices"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/plan"
)

// uneven returns ranks on machines of their own whose links have these rates, in bits a second.
func uneven(rates ...float64) System {
	s := Apart(Default(), len(rates), plan.ChunkSize)
	for _, r := range rates {
		s.Gaps = append(s.Gaps, gap(r))
	}
	s.Network.Gap = slices.Min(s.Gaps)
	return s
}

// A message takes as long as the slower one of the links that carry it.
func TestOneMessageOnUnevenLinks(t *testing.T) {
	for _, rates := range [][]float64{{1e9, 0.25e9}, {0.25e9, 1e9}, {0.25e9, 0.25e9}} {
		s := uneven(rates...)
		s.Links = Links{Network: Link{Latency: 5 * us}}
		if got := timeOf(t, s, by(t, "broadcast", "binomial"), "broadcast", 1000); got != 37*us {
			t.Errorf("%v: %v", rates, got)
		}
	}
}

func TestChain(t *testing.T) {
	two := uneven(1e9, 2e9, 0.5e9)
	two.Machines = []int{0, 1, 2, 1, 0, 2} // a rail of three machines, and another one; or six ranks
	for _, c := range []struct {
		s    System
		size int
		want []int
	}{
		{Apart(Default(), 4, plan.ChunkSize), 4, nil},
		{uneven(1e9, 1e9, 1e9), 3, nil},
		{uneven(1e9, 1e9, 1e9, 0.25e9), 4, []int{3, 1, 2, 0}},
		{uneven(1e9, 0.5e9, 1e9, 1e9, 0.25e9), 5, []int{4, 0, 2, 3, 1}},
		{uneven(1e9, 0.25e9), 2, []int{1, 0}},
		{two, 3, []int{2, 1, 0}},
		{two, 6, []int{2, 5, 1, 3, 0, 4}},
	} {
		if got := c.s.Chain(c.size); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.s.Gaps, got, c.want)
		}
	}
}

// If one link has half the rate of the others, or less, a long all-reduce takes little more time than that link needs for the vector, once in each
// direction. A ring takes 2(P-1)/P times as long.
func TestAllReduceWithASlowLink(t *testing.T) {
	for _, ranks := range []int{3, 4, 8, 16} {
		for _, at := range []int{0, 1, ranks - 1} {
			for _, times := range []float64{2, 4, 30} {
				rates := slices.Repeat([]float64{1e9}, ranks)
				rates[at] /= times
				s := uneven(rates...)
				choice := s.Choice(plan.Ways, "all_reduce", 1)
				if longest := choice[len(choice)-1].Name; longest != "chain" && ranks > 3 { // halving folds one of three ranks into another
					t.Errorf("%d ranks, rank %d is %v times as slow: %v", ranks, at, times, choice)
				}
				for bytes, most := range map[int]float64{4 << 20: 1.15, 32 << 20: 1.06} {
					c := by(t, "all_reduce", choice.Pick(bytes))
					c.Chain = s.Chain(ranks)
					least := time.Duration(float64(bytes) * 8 / rates[at] * 1e9)
					if got := timeOf(t, s, c, "all_reduce", bytes); got < least || float64(got) > most*float64(least) {
						t.Errorf("%d bytes by %d ranks, rank %d is %v times as slow: %v, at least %v", bytes, ranks, at, times, got, least)
					}
				}
			}
		}
	}
}
