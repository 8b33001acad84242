package cost

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/choice"
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

// The messages of a chain are shorter where the slowest link is slower, but not very short.
func TestChain(t *testing.T) {
	for _, c := range []struct {
		s    System
		want plan.Chain
	}{
		{Apart(Default(), 4, plan.ChunkSize), plan.Chain{}},
		{uneven(1e9, 1e9, 1e9), plan.Chain{}},
		{uneven(10e9, 10e9, 1e9, 10e9), plan.Chain{Order: []int{0, 1, 3, 2}, MessageCost: leastMessage, LeastMessage: 2500}},
		{uneven(100e9, 10e9, 100e9), plan.Chain{Order: []int{0, 2, 1}, MessageCost: 10_000, LeastMessage: 25_000}}, // in 8 us of overheads and 20 of latency
		{uneven(1e9, 1e6, 1e9), plan.Chain{Order: []int{0, 2, 1}, MessageCost: leastMessage, LeastMessage: leastMessage}},
	} {
		if got := c.s.Chain(len(c.s.Machines)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.s.Gaps, got, c.want)
		}
	}
}

// If one link has half the rate of the others, or less, a long all-reduce takes little more time than that link needs for the vector, once in each
// direction. In a ring, it takes at least 3/2 of that.
func TestAllReduceWithASlowLink(t *testing.T) {
	for _, ranks := range []int{3, 4, 8, 16} {
		for _, at := range []int{0, 1, ranks - 1} {
			for _, times := range []float64{2, 4, 30} {
				rates := slices.Repeat([]float64{1e9}, ranks)
				rates[at] /= times
				s := uneven(rates...)
				ways := s.Choice(plan.Ways, "all_reduce", 1)
				if way := ways.Pick(1 << 30); way != "pipeline" && ranks > 3 { // with 3 ranks, halving is as fast
					t.Errorf("%d ranks, the link of rank %d is %v times as slow: %v", ranks, at, times, ways)
				}
				for bytes, most := range map[int]float64{4 << 20: 1.13, 32 << 20: 1.05} {
					least := time.Duration(float64(bytes) * 8 / rates[at] * 1e9)
					for way, within := range map[string][2]float64{ways.Pick(bytes): {1, most}, "ring": {4. / 3, 2.1}} {
						c := by(t, "all_reduce", way)
						c.Chain = s.Chain(ranks)
						if got := float64(timeOf(t, s, c, "all_reduce", bytes)) / float64(least); got < within[0] || got > within[1] {
							t.Errorf("%d bytes by %d ranks, the link of rank %d is %v times as slow: by %s, %v of the least time", bytes, ranks, at, times, way, got)
						}
					}
				}
			}
		}
	}
}

// Where latencies are long, short vectors take few steps, but long ones use the table's way. They do so as well where ways have too many messages
// to simulate, unless another way sends less over the slow link.
func TestLongVectorsOfManyRanks(t *testing.T) {
	for _, c := range []struct {
		op            string
		ranks         int
		latency       time.Duration
		rate, slowest float64
		want          string // for 1 GiB
	}{
		{"all_reduce", 24, 8 * time.Millisecond, 1e9, 1e9, "bidirectional"},
		{"all_reduce", 64, 8 * time.Millisecond, 1e9, 1e9, "bidirectional"},
		{"all_reduce", 48, 8 * time.Millisecond, 1e9, 0.5e9, "bidirectional"},
		{"broadcast", 36, 8 * time.Millisecond, 1e9, 1e9, "pipeline"},
		{"broadcast", 64, 50 * us, 10e9, 10e9, "pipeline"},
		{"reduce", 64, 32 * time.Millisecond, 10e9, 10e9, "pipeline"},
		{"reduce_scatter", 128, 8 * time.Millisecond, 1e9, 1e9, "pipeline"},
		{"reduce", 12, 128 * time.Millisecond, 1e9, 1e9, "pipeline"},
		{"all_reduce", 12, 128 * time.Millisecond, 1e9, 1e9, "bidirectional"},
		{"broadcast", 16, 2 * time.Millisecond, 10e9, 10e9, "pipeline"},
		{"all_reduce", 24, 20 * us, 1e9, 0.1e9, "pipeline"},
		{"all_reduce", 24, 20 * us, 10e9, 2.5e9, "pipeline"},
		{"all_reduce", 8, 500 * us, 10e9, 1e9, "pipeline"},
	} {
		rates := slices.Repeat([]float64{c.rate}, c.ranks)
		rates[c.ranks/2] = c.slowest
		s := uneven(rates...)
		s.Network.Latency = c.latency
		ways := s.Choice(plan.Ways, c.op, 1)
		if got := (choice.Chooser{Table: plan.Ways, Model: func(string, int) choice.Choice { return ways }}).Pick(c.op, c.ranks, 1<<30); got != c.want {
			t.Errorf("%+v: %s: %v", c, got, ways)
		}
	}
}

// A chain of k messages takes as long as the comment of ChainAllReduce says.
func TestAllReduceAlongAChain(t *testing.T) {
	const message = 1000
	for p := 2; p <= most; p++ {
		for k := 1; k < 40; k += 3 {
			for _, times := range []int{2, 3, 20} {
				for _, both := range []bool{false, true} {
					s := Apart(Links{Network: Link{Gap: 8000}}, p, noLimit)
					for range p {
						s.Gaps = append(s.Gaps, 8000)
					}
					s.Gaps[p-1] *= times
					if both {
						s.Gaps[0] = s.Gaps[p-1]
					}
					var plans []plan.Plan
					for r := range p {
						plans = append(plans, plan.ChainAllReduce(r, p, k*message, k))
					}
					got, ok := s.Time(plans, true)
					one := ofBytes(message, s.Gaps[p-1]).toDuration()
					if !ok || got < time.Duration(k)*one || got > time.Duration(k+2*p-2)*one {
						t.Errorf("%d ranks, %d messages, %d times as slow, at both ends: %t: %v, and one message takes %v", p, k, times, both, got, one)
					}
				}
			}
		}
	}
}
