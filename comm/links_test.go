package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/cost"
	"github.com/gorun/gorun/comm/internal/plan"
)

// linked are the links of worlds whose ranks choose other algorithms than those of the table: where a message takes long, and where a byte
// does. After the comma is the placement of ranks that share memory.
var linked = map[string]string{
	"far":               "network=latency:100ms; machine=latency:100ms",
	"narrow":            "network=latency:0s,overhead:0s,rate:1Mbit; machine=latency:0s,overhead:0s,rate:1Mbit",
	"narrow, scattered": "network=latency:0s,overhead:0s,rate:1Mbit",
	"uneven, apart":     unevenLinks,
	"uneven, scattered": unevenLinks,
}

// unevenLinks are the links of worlds in which some machines have slower links than others.
const unevenLinks = "network=latency:0s,overhead:0s,copy:10000Gbit,rate:1Gbit"

// byLinks are the names of linked.
var byLinks = []string{"far", "narrow", "narrow, scattered", "uneven, apart", "uneven, scattered"}

func worldWithLinks(t testing.TB, links, placement string, size int) *testWorld {
	cfg := config{Config: bootstrap.Config{Timeout: time.Minute, Links: links}}
	return newConfiguredWorld(t, cfg, transports["mem"](t, size), machinesOf(placement, size), func(w *bootstrap.World) {
		if links == unevenLinks {
			for r := range size {
				times := []int{2, 8, 1}[placements[placement](r, size)%3]
				w.Gaps = append(w.Gaps, times*w.Links.Network.Gap)
			}
		}
	})
}

// All ranks choose the same by the links, which is not what the table says. They do so in all groups, unless those have a tuning.
func TestRanksChooseByLinks(t *testing.T) {
	for _, c := range []struct {
		network    string
		size       int
		tuning, op string
		bytes      int
		want, has  string
	}{
		{"mem", 4, "", "all_reduce", 1 << 20, "halving", "built in"},
		{"far", 4, "", "all_reduce", 1 << 20, "pairwise", "by messages (by what the links predict, 4 ranks, 1048576 bytes)"},
		{"far", 4, "all_reduce=ring", "all_reduce", 1 << 20, "ring", "tuned"},
		{"far", 4, "all_reduce@3=ring", "all_reduce", 1 << 20, "pairwise", "by what the links predict"},
		{"far", 8, "", "broadcast", 16 << 20, "linear", "by what the links predict"},
		{"far", 8, "", "barrier", 0, "pairwise", "by what the links predict"},
		{"mem", 8, "", "barrier", 0, "dissemination", "built in"},
		{"mem", 5, "all_reduce=pairwise", "all_reduce", 12000, "pairwise", "tuned"},
		{"mem", 5, "all_reduce=pairwise", "all_reduce", 64 << 20, "pairwise", "tuned"},
		{"far", 5, "", "sendrecv", 1 << 20, "rendezvous", "built in"},
		{"narrow", 4, "", "all_reduce", 1 << 10, "bidirectional", "by what the links predict"},
		{"narrow", 1, "", "all_reduce", 1 << 10, "", "a copy"},
		{"narrow, scattered", 7, "", "all_reduce", 1 << 10, "leaders bidirectional", "2. By messages (by what the links predict, 3 ranks, 1024 bytes)"},
		{"uneven, apart", 4, "", "all_reduce", 1 << 20, "pipeline", "rate:1Gbit,copy:8000Gbit; rate:0.5Gbit for the machine of rank 0; rate:0.125Gbit for the machine of rank 1; rate:0.5Gbit for the machine of rank 3."},
		{"uneven, apart", 4, "", "all_reduce", 16 << 20, "pipeline", "by what the links predict"},
		{"uneven, scattered", 7, "", "all_reduce", 4 << 20, "rails pipeline", "rate:1Gbit,copy:8000Gbit; rate:0.5Gbit for the machine of rank 1; rate:0.125Gbit for the machine of rank 3."},
		{"narrow, scattered", 7, "all_reduce=halving", "all_reduce", 1 << 10, "leaders halving", "tuned"},
	} {
		t.Run(fmt.Sprint(c.network, c.size, c.op, c.bytes), func(t *testing.T) {
			w := worldOver(t, c.network, c.size)
			defer w.close()
			texts := make([]string, c.size)
			w.run(func(ctx context.Context, world *Group) error {
				g, err := NewGroup(ctx, world, world.Ranks(), WithTuning(c.tuning))
				if err != nil {
					return err
				}
				texts[g.Rank()] = g.Explain(c.op, c.bytes)
				sum := make([]int32, min(max(c.bytes/4, 3000), 1<<20))
				for i := range sum {
					sum[i] = int32(i)
				}
				if err := AllReduce(ctx, g, sum, Sum); err != nil {
					return err
				}
				for i, got := range sum {
					if int(got) != i*c.size {
						return fmt.Errorf("element %d is %d, want %d", i, got, i*c.size)
					}
				}
				return nil
			})
			for r, text := range texts {
				if text != texts[0] || picked(text) != c.want || !strings.Contains(text, c.has) || strings.Contains(text, "by what the links predict") && !isFastest(text) {
					t.Errorf("rank %d says\n%swant %q and %q", r, text, c.want, c.has)
					break
				}
			}
		})
	}
}

// isFastest reports whether the last way that an explanation points at takes the least predicted time, or at most 5 % more.
func isFastest(text string) bool {
	picked, least := 0., math.Inf(1)
	for line := range strings.Lines(text) {
		before, _, found := strings.Cut(line, " us  ")
		fields := strings.Fields(before)
		switch {
		case strings.Contains(line, "up to"): // another table
			least = math.Inf(1)
		case found:
			us, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				return false
			}
			if least = min(least, us); fields[0] == ">" {
				picked = us
			}
		}
	}
	return picked > 0 && picked <= 1.051*least
}

// Ranks measure only how far away rank 0 is. So a group chooses by measured links only if it has near members and far ones. All members choose
// the same.
func TestGroupsUseMeasuredLinksOnlyIfNearAndFar(t *testing.T) {
	distances := []core.Distance{core.Near, core.Near, core.Far, core.Far, core.Far, core.UnknownDistance}
	machines := []string{"a", "b", "c", "d", "e", "e"}
	w := newConfiguredWorld(t, config{Config: bootstrap.Config{Timeout: time.Minute}}, transports["mem"](t, len(distances)), machines, func(w *bootstrap.World) {
		far, err := cost.Parse(linked["far"])
		if err != nil {
			t.Fatal(err)
		}
		w.Distances, w.FarLinks = distances, far
	})
	defer w.close()
	for _, c := range []struct {
		ranks          []int
		want, hasLinks string
	}{
		{[]int{0, 2, 3}, "pairwise", "latency:100ms"},
		{[]int{4, 3, 1}, "pairwise", "latency:100ms"},
		{[]int{4, 3, 2}, "doubling", "latency:20us"},
		{[]int{0, 1, 5}, "doubling", "latency:20us"},
		{[]int{5, 2, 3}, "doubling", "latency:20us"},
		{[]int{5, 4, 1}, "leaders doubling", "latency:100ms"}, // on two machines all ways are alike
		{[]int{5, 4, 2}, "leaders doubling", "latency:20us"},
	} {
		w.run(func(ctx context.Context, world *Group) error {
			g, err := NewGroup(ctx, world, c.ranks)
			if err != nil || g == nil {
				return err
			}
			if text := g.Explain("all_reduce", 64); picked(text) != c.want || !strings.Contains(text, c.hasLinks) {
				return fmt.Errorf("it says\n%swant %q and %q", text, c.want, c.hasLinks)
			}
			sum := []int{1}
			if err := AllReduce(ctx, g, sum, Sum); err != nil || sum[0] != len(c.ranks) {
				return errors.Join(err, fmt.Errorf("got %d", sum[0]))
			}
			return g.Close()
		})
	}
}

// Of many slow links, only the first are listed.
func TestManySlowLinks(t *testing.T) {
	s := cost.Apart(cost.Default(), 12, plan.ChunkSize)
	for range s.Machines {
		s.Gaps = append(s.Gaps, 2*s.Network.Gap)
	}
	s.Gaps[0], s.Gaps[5] = s.Network.Gap, s.Network.Gap
	var e explanation
	e.predictedWithNetwork(s)
	if text := e.String(); strings.Count(text, "rate:5Gbit for the machine of rank") != 8 || !strings.HasSuffix(text, " 9; 2 more machines are slower.\n") {
		t.Error(text)
	}
}

// The arrow is at one line, though an algorithm may be chosen for several lengths.
func TestOneArrow(t *testing.T) {
	t.Setenv("WORLD_SIZE", "8")
	t.Setenv("GORUN_COMM_LINKS", "network=latency:50us,rate:1Gbit")
	t.Setenv("GORUN_COMM_TUNE", "broadcast=binomial:1K,chain:2K,binomial")
	for _, c := range []struct {
		op    string
		bytes int
		want  string
	}{
		{"all_to_all", 1 << 10, "ll pairwise"},
		{"all_reduce", 200 << 10, "shared bidirectional"},
		{"all_reduce", 16 << 20, "shared bidirectional"},
		{"broadcast", 10 << 10, "slots binomial"},
	} {
		if text := Explain(c.op, c.bytes); picked(text) != c.want {
			t.Errorf("want %s:\n%s", c.want, text)
		}
	}
}
