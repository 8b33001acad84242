package cost

import (
	"math"
	"math/rand"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
)

// network returns links with a network of so many nanoseconds and picoseconds for a byte.
func network(latency, gap int) Links {
	l := Default()
	l.Network.Latency, l.Network.Gap = time.Duration(latency), gap
	return l
}

// chosen returns the choice of s for op, which keeps the table where the model does.
func chosen(s *System, op string) choice.Chooser {
	return choice.Chooser{Table: plan.Ways, Model: func(string, int) choice.Choice { return s.Choice(plan.Ways, op, 1) }}
}

var compared = []string{"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}

// What is chosen takes at most 5 % longer than the best way where ways have been compared, and seldom longer in between. The messages of a
// way are cut there into others, so it takes a little more or less time than the line between two lengths.
func TestChoiceIsAsFastAsTheBest(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	slower, all := 0, 0
	for range 15 {
		s := Apart(network(int(1000*math.Exp(9*random.Float64())), int(100*math.Exp(6*random.Float64()))), 2+random.Intn(8), plan.ChunkSize)
		ranks := len(s.Machines)
		for _, op := range compared {
			c := chosen(&s, op).Choice(op, ranks)
			check := func(bytes int, exact bool) {
				best, got := time.Duration(math.MaxInt64), time.Duration(0)
				for _, way := range plan.Ways.Free(op) {
					d := timeOf(t, s, by(t, op, way), op, bytes)
					if best = min(best, d); way == c.Pick(bytes) {
						got = d
					}
				}
				all++
				switch {
				case got > best*105/100 && exact, got > best*3/2:
					t.Errorf("%s of %d bytes by %d ranks takes %v, and %v at best: %v, %v", op, bytes, ranks, got, best, c, s.Network)
				case got > best*106/100:
					slower++
				}
			}
			for bytes := 1 << 10; bytes <= 16<<20; bytes *= 16 {
				check(bytes, true)
				check(bytes+random.Intn(15*bytes), false)
			}
		}
	}
	if slower > all/50 {
		t.Errorf("%d of %d choices are more than 6 %% slower than the best", slower, all)
	}
}

// A choice is what a tuning may be: each way is for more bytes than the one before it, and the last one has no limit.
func TestChoiceIsATuning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Apart(network(rapid.IntRange(0, 1e9).Draw(t, "latency"), rapid.IntRange(0, 8e6).Draw(t, "gap")), rapid.IntRange(1, 20).Draw(t, "ranks"), plan.ChunkSize)
		op := rapid.SampledFrom(compared).Draw(t, "op")
		c := s.Choice(plan.Ways, op, 1)
		if c == nil {
			return
		}
		if rules, err := choice.Parse(op+"="+c.String(), plan.Ways); err != nil || rules.String() != op+"="+c.String() {
			t.Errorf("%v: %v", c, err)
		}
	})
}

func TestChoiceFollowsTheLinks(t *testing.T) {
	for _, c := range []struct {
		links        string
		op           string
		ranks, bytes int
		want         string
	}{
		{"network=latency:50us,rate:1Gbit", "reduce", 4, 32 << 10, "binomial"}, // by the table, up to 128K
		{"network=latency:50us,rate:1Gbit", "reduce", 4, 96 << 10, "halving"},
		{"network=latency:50us,rate:1Gbit", "reduce", 4, 128 << 10, "pipeline"},
		{"network=latency:50us,rate:1Gbit", "broadcast", 16, 64 << 10, "scatter"},
		{"network=latency:50us,rate:1Gbit", "all_reduce", 8, 48 << 10, "halving"}, // doubling, up to 64K
		{"network=latency:20ms", "all_reduce", 8, 2 << 20, "pairwise"},
		{"network=latency:20ms", "all_reduce", 8, 8 << 20, "doubling"},
		{"network=latency:20ms", "broadcast", 8, 4 << 20, "linear"},
		{"network=latency:20ms", "broadcast", 8, 16 << 20, "binomial"},
		{"network=latency:5ms", "all_reduce", 8, 64, "pairwise"},
		{"network=latency:5ms", "reduce", 8, 64, "linear"},
		{"network=latency:5ms", "all_gather", 8, 64, "pairwise"},
		{"network=latency:5ms", "barrier", 8, 0, "pairwise"},
		{"network=latency:5us,rate:100Mbit", "broadcast", 48, 8, "binomial"},
		{"network=latency:5us,rate:100Mbit", "broadcast", 48, 4 << 10, "scatter"},
		{"network=latency:1us", "all_reduce", 8, 64, "doubling"},
		{"network=latency:1us", "barrier", 8, 0, "dissemination"},
	} {
		links, err := Parse(c.links)
		if err != nil {
			t.Fatal(err)
		}
		s := Apart(links, c.ranks, plan.ChunkSize)
		chooser := chosen(&s, c.op)
		if got := chooser.Pick(c.op, c.ranks, c.bytes); got != c.want {
			t.Errorf("%+v: goes by %s: %v", c, got, chooser.Choice(c.op, c.ranks))
		}
	}
}

// With one rank or one way, or where no time can be predicted, the table stays.
func TestTheTableStays(t *testing.T) {
	slow := network(50_000, 8000)
	for _, c := range []struct {
		op    string
		ranks int
	}{
		{"scan", 8}, {"nodes", 8}, {"no operation", 8}, {"all_reduce", 1}, {"all_gather", 1 << 20},
		{"all_gather", 300}, {"reduce_scatter", 300}, // the table's way has too many messages
		{"barrier", 2}, {"all_reduce", 2}, {"reduce", 2}, {"broadcast", 2}, {"all_gather", 2}, {"reduce_scatter", 2}, {"all_to_all", 2}, {"gather", 2}, {"scatter", 2},
	} {
		s := Apart(slow, c.ranks, plan.ChunkSize)
		if got := s.Choice(plan.Ways, c.op, 1); got != nil {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// What is chosen for several rails takes at most 5 % longer than the best way when they all send at the same time.
func TestChoiceOnRails(t *testing.T) {
	const machines, rails, op = 4, 8, "all_reduce"
	s := System{Links: network(20_000, 800), Processors: make([]int, machines), Chunk: plan.ChunkSize}
	for range rails {
		for m := range machines {
			s.Machines, s.Kernels = append(s.Machines, m), append(s.Kernels, m)
		}
	}
	c, apart := s.Choice(plan.Ways, op, rails), Apart(s.Links, machines, plan.ChunkSize)
	for bytes := 1 << 10; bytes <= 1<<20; bytes *= 2 {
		times, best := map[string]time.Duration{}, time.Duration(math.MaxInt64)
		for _, way := range plan.Ways.Free(op) {
			plans, inPlace := Plans(by(t, op, way), op, machines, bytes)
			d, _ := s.Time(OnRails(plans, rails), inPlace)
			times[way], best = d, min(best, d)
		}
		if got := times[c.Pick(bytes)]; got > best*105/100 {
			t.Errorf("%d bytes: %v takes %v, and the best way %v", bytes, c, got, best)
		}
	}
	if one := apart.Choice(plan.Ways, op, 1); one.String() == c.String() {
		t.Errorf("%v, whether or not rails share the network", c)
	}
}
