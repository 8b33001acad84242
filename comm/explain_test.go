package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/env/testing/testkit"
)

// picked has what an explanation points at, way by way.
func picked(text string) (ways string) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, "  > "); found {
			ways += " " + strings.Fields(rest)[1]
		}
	}
	return strings.TrimSpace(ways)
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		world     string
		size      int
		tuning    string
		op        string
		bytes     int
		want, has string
	}{
		{"mem", 2, "", "all_reduce", 64, "doubling", "all_reduce of 64 bytes, 2 ranks that share no memory"},
		{"mem", 3, "", "AllReduce", 1 << 20, "halving", "recursive halving"},
		{"mem", 3, "", "all-reduce", 1<<20 + 1, "ring", ""},
		{"mem", 3, "all_reduce=ring", "all_reduce", 64, "ring", "by messages (tuned, 3 ranks, 64 bytes)"},
		{"mem", 3, "all_reduce@4=ring", "all_reduce", 64, "doubling", "built in"},
		{"mem", 4, "", "all_to_all", 1024, "bruck", ""},
		{"mem", 3, "", "all_to_all", 768, "pairwise", ""},
		{"mem", 5, "", "broadcast", 64 << 20, "pipeline", ""},
		{"mem", 2, "", "broadcast", 64 << 20, "binomial", ""},
		{"scattered", 9, "", "broadcast", 128 << 10, "rails binomial", "3 machines"},
		{"scattered", 9, "", "broadcast", 1 << 20, "rails pipeline", "in short messages"},
		{"scattered", 9, "", "reduce", 1 << 20, "rails pipeline", ""},
		{"scattered", 9, "reduce=pipeline", "reduce", 64, "leaders pipeline", ""},
		{"shm", 2, "", "all_reduce", 64, "ll", "That is if they can share memory"},
		{"shm", 2, "", "all_reduce", 16 << 20, "flat", "Buffers of comm.Alloc are used in place"},
		{"shm", 3, "", "all_reduce", 16 << 20, "shared", ""},
		{"shm", 3, "all_reduce=flat", "all_reduce", 16 << 20, "flat", ""},
		{"shm", 3, "all_reduce=flat", "reduce", 16 << 20, "shared", ""},
		{"shm", 3, "", "barrier", 0, "ll", ""},
		{"shm", 3, "", "scan", 8, "doubling", ""},
		{"shm", 2, "", "sendrecv", 1 << 20, "rendezvous", ""},
		{"halves", 4, "", "all_reduce", 1 << 20, "rails halving", "2 machines"},
		{"halves", 4, "", "all_reduce", 1 << 10, "leaders doubling", "each combines its slice"},
		{"halves", 4, "nodes=leaders", "all_reduce", 1 << 20, "leaders ring", ""},
		{"uneven", 7, "", "all_reduce", 64 << 20, "rails bidirectional", "3 machines"},
		{"uneven", 7, "all_reduce=ring", "all_reduce", 64 << 20, "rails ring", ""},
		{"halves", 4, "nodes=rails", "all_reduce", 1 << 20, "rails halving", ""},
		{"mem", 4, "", "gather", 1 << 50, "linear", "any  linear         each block straight to root"},
		{"mem", 4, "", "gather", -1, "", "any  linear         each block straight to root"},
		{"halves", 4, "", "all_to_all", 64, "", "Blocks are short"},
		{"halves", 4, "", "all_to_all", 1 << 20, "", "Blocks go straight"},
		{"halves", 4, "", "reduce_scatter", 64, "leaders pairwise", "they take their blocks"},
		{"halves", 4, "", "barrier", 0, "dissemination", "it lets them go"},
		{"mem", 1, "", "all_reduce", 64, "", "a copy"},
		{"mem", 2, "", "all_reduse", 64, "", `there is no operation "all_reduse": want all_reduce, `},
	} {
		t.Run(fmt.Sprint(c.world, c.size, c.tuning, c.op, c.bytes), func(t *testing.T) {
			w := worldOver(t, c.world, c.size)
			defer w.close()
			rules, err := core.ParseTuning(c.tuning)
			if err != nil {
				t.Fatal(err)
			}
			texts := map[string]int{}
			for _, g := range w.groups {
				g.core.Planner().Tuning = rules
				texts[g.Explain(c.op, c.bytes)]++
			}
			for text, n := range texts {
				if n != c.size || picked(text) != c.want || !strings.Contains(text, c.has) {
					t.Errorf("%d of %d ranks say\n%swant %q and %q", n, c.size, text, c.want, c.has)
				}
			}
		})
	}
}

// TestExplainOfAGroup: what counts is where the members of the group are, in its order, and not which ranks of the
// world they are.
func TestExplainOfAGroup(t *testing.T) {
	for name, c := range map[string]struct {
		world  string
		size   int
		ranks  []int
		op     string
		likeIn string // a world in which all ranks are where those of the group are
	}{
		"last ranks":          {"mem", 3, []int{1, 2}, "all_reduce", "mem"},
		"in other order":      {"halves", 4, []int{0, 2, 1, 3}, "scan", "mixed"},
		"in other order back": {"mixed", 4, []int{0, 2, 1, 3}, "scan", "halves"},
	} {
		t.Run(name, func(t *testing.T) {
			like := worldOver(t, c.likeIn, len(c.ranks))
			defer like.close()
			want := like.groups[0].Explain(c.op, 1<<20)
			w := worldOver(t, c.world, c.size)
			defer w.close()
			w.run(func(ctx context.Context, world *Group) error {
				g, err := NewGroup(ctx, world, c.ranks)
				if err != nil || g == nil {
					return err
				}
				if text := g.Explain(c.op, 1<<20); text != want {
					return fmt.Errorf("it says\n%swant\n%s", text, want)
				}
				return nil
			})
		})
	}
}

// A group goes by the tuning that it is given: its ranks take the steps of that way, and get what they would by any
// other.
func TestGroupsHaveTuningsOfTheirOwn(t *testing.T) {
	testkit.WithoutRace(t)
	const size = 4
	for _, world := range []string{"mem", "chunks", "shm"} {
		w := worldOver(t, world, size)
		w.run(func(ctx context.Context, parent *Group) error {
			for _, way := range parent.Ways("all_reduce") {
				g, err := NewGroup(ctx, parent, []int{0, 1, 2, 3}, withRules("all_reduce="+way))
				if err != nil {
					return err
				}
				sum := make([]int, 10_000)
				sum[9999] = g.Rank()
				if err := AllReduce(ctx, g, sum, Sum); err != nil || sum[9999] != 6 {
					return errors.Join(err, fmt.Errorf("%s: got %d", way, sum[9999]))
				}
				if got := picked(g.Explain("all_reduce", 80_000)); got != way {
					return fmt.Errorf("%s: goes by %s", way, got)
				}
				part, err := Split(ctx, g, 0, 0)
				if err != nil || picked(part.Explain("all_reduce", 80_000)) != way {
					return errors.Join(err, fmt.Errorf("%s: a part of the group goes by another", way))
				}
			}
			return nil
		})
		w.close()
	}
}

func TestGroupsOfDifferentTunings(t *testing.T) {
	w := worldOver(t, "mem", 2)
	defer w.close()
	for r, err := range w.results(func(ctx context.Context, world *Group) error {
		_, err := NewGroup(ctx, world, []int{0, 1}, withRules([]string{"all_reduce=ring", "all_reduce=halving"}[world.Rank()]))
		return err
	}) {
		if _, ok := errors.AsType[*MismatchError](err); !ok {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// The tuning of rank 0 counts for all. Who has been given another one is told.
func TestAllRanksGoByTheTuningOfRank0(t *testing.T) {
	const size = 3
	given := []string{"all_reduce=ring", "all_reduce=halving", ""}
	store := NewMemStore()
	logs, texts := make([]bytes.Buffer, size), make([]string, size)
	var all sync.WaitGroup
	for rank := range size {
		all.Go(func() {
			g, err := Init(t.Context(), WithStore(store), WithRank(rank, size), WithTransport("tcp"), withRules(given[rank]),
				WithLogger(slog.New(slog.NewTextHandler(&logs[rank], nil))))
			if err != nil {
				t.Error(err)
				return
			}
			texts[rank] = g.Explain("all_reduce", 64)
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for rank, text := range texts {
		if picked(text) != "ring" || text != texts[0] {
			t.Errorf("rank %d says\n%s", rank, text)
		}
		if said := strings.Contains(logs[rank].String(), "the tuning of rank 0 counts"); said != (rank == 1) {
			t.Errorf("rank %d is told that another tuning counts: %t", rank, said)
		}
	}
}

// A wrong tuning is an error of ParseTuning, or of Init if it is in the environment.
func TestTuningThatIsNone(t *testing.T) {
	const rules = "all_reduce=rink"
	_, err := ParseTuning(rules)
	t.Setenv("GORUN_COMM_TUNE", rules)
	_, ofInit := Init(t.Context(), WithStore(NewMemStore()), WithRank(0, 1))
	for _, err := range []error{err, ofInit} {
		if _, ok := errors.AsType[*ArgumentError](err); !ok || !strings.Contains(err.Error(), `all_reduce has no way "rink": want some of doubling, halving, ring, bidirectional, pairwise; or of flat, shared`) {
			t.Errorf("got %v", err)
		}
	}
}

// withRules is WithTuning for rules that can be parsed.
func withRules(rules string) GroupOption {
	t, err := ParseTuning(rules)
	if err != nil {
		panic(err)
	}
	return WithTuning(t)
}

// The arrow is at one line, though an algorithm may be chosen for several lengths.
func TestOneArrow(t *testing.T) {
	t.Setenv("WORLD_SIZE", "8")
	t.Setenv("GORUN_COMM_TUNE", "broadcast=binomial:1K,pipeline:2K,binomial")
	if text := Explain("broadcast", 10<<10); picked(text) != "slots binomial" {
		t.Errorf("got\n%s", text)
	}
}

func TestExplainWithoutAWorld(t *testing.T) {
	t.Setenv("WORLD_SIZE", "4")
	t.Setenv("GORUN_COMM_TUNE", "broadcast=pipeline")
	if text := Explain("broadcast", 4096); picked(text) != "slots pipeline" || !strings.Contains(text, "no world is open") {
		t.Errorf("got\n%s", text)
	}
	t.Setenv("GORUN_COMM_TUNE", "broadcast")
	if text := Explain("broadcast", 4096); !strings.Contains(text, "want operation=way") {
		t.Errorf("got\n%s", text)
	}
}
