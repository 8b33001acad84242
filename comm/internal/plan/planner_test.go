package plan

import (
	"reflect"
	"slices"
	"testing"

	"github.com/gorun/gorun/comm/internal/choice"
)

// tuned returns the planner of ranks between machines with a tuning.
func tuned(t *testing.T, rules string) Planner {
	t.Helper()
	tuning, err := choice.Parse(rules, choice.Messages)
	if err != nil {
		t.Fatal(err)
	}
	return NewPlanner(choice.Network, tuning)
}

// Every way of an operation that a tuning may name is carried out as itself. A line in choice.Network is not enough for that: a
// method of Planner must know the way.
func TestEveryWayIsCarriedOut(t *testing.T) {
	const size, n, elem = 8, 1 << 10, 4 << 10
	carriedOut := map[string]func(c Planner) any{
		"all_reduce": func(c Planner) any { return c.AllReduce(1, size, n, elem, false) },
		"all_gather": func(c Planner) any { return c.AllGather(nil, 1, EqualBlocks(size, n), elem) },
		"reduce_scatter": func(c Planner) any {
			p, _ := c.ReduceScatter(nil, 1, EqualBlocks(size, n), elem, false, choice.Any)
			return p
		},
		"reduce":     func(c Planner) any { return c.Reduce(6, size, n, elem, 0, false) },
		"broadcast":  func(c Planner) any { return c.Broadcast(3, size, n, elem, 0) },
		"all_to_all": func(c Planner) any { return c.AllToAll(1, size, n, elem, 0) },
		"gather":     func(c Planner) any { return c.Gather(2, size, n, elem, 0) },
		"scatter":    func(c Planner) any { return c.Scatter(2, size, n, elem, 0) },
		"barrier":    func(c Planner) any { return c.Barrier(1, size) },
		"nodes":      func(c Planner) any { return c.Rails(Placed(0, []int{0, 0, 1, 1}), n*elem) },
	}
	for _, line := range choice.Messages {
		names := choice.Messages.Free(line.Op)
		if len(names) < 2 {
			continue
		}
		plan := carriedOut[line.Op]
		if plan == nil {
			t.Errorf("%s has the ways %q: say here how they are carried out", line.Op, names)
			continue
		}
		for _, other := range names {
			if other == line.Algorithm {
				continue
			}
			var got [2]any
			for i, way := range []choice.Algorithm{line.Algorithm, other} {
				got[i] = plan(tuned(t, line.Op+"="+string(way)))
			}
			if reflect.DeepEqual(got[0], got[1]) {
				t.Errorf("%s is carried out in the same way whether it is to be %s or %s", line.Op, line.Algorithm, other)
			}
		}
	}
}

// A piece of a buffer uses the algorithm of the whole buffer, which Explain shows, whatever the length of the piece.
func TestPiecesUseTheAlgorithmOfTheWhole(t *testing.T) {
	const size, n, pieces = 4, 4 << 20, 8
	c := chosen
	c.Pieces = pieces
	short, long := chosen.AllReduce(1, size, n/pieces, 1, false), Ring{BothWays: true}.AllReduce(1, size, n/pieces)
	if got := c.AllReduce(1, size, n/pieces, 1, false); !slices.Equal(got, long) || slices.Equal(short, long) {
		t.Errorf("%v", got)
	}
}

func TestBlocksOfDifferentLengths(t *testing.T) {
	const kilo = 1 << 10
	blocks := func(lengths ...int) (blocks []Range) {
		at := 0
		for _, n := range lengths {
			blocks = append(blocks, Range{at, at + n})
			at += n
		}
		return blocks
	}
	nearby := NewPlanner(choice.Near, nil)
	ring, bothWays, pipelined := Ring{}.AllGather, Ring{BothWays: true}.AllGather, Ring{Longest: choice.Network.RingMessage}.ReduceScatter
	for _, c := range []struct {
		name    string
		planner Planner
		lengths []int // in KiB
		joined  int   // the most that is joined, in KiB
		gather  func(Plan, int, []Range) Plan
		joins   bool
		scatter func(Plan, int, []Range) Plan
	}{
		{"equal, 4 ranks", chosen, []int{4, 4, 4, 4}, 100, DoublingAllGather, true, HalvingReduceScatter},
		{"equal, not joined", chosen, []int{4, 4, 4, 4}, 15, ring, false, PairwiseReduceScatter},
		{"uneven, 4 ranks", chosen, []int{1, 9, 0, 20}, 100, DoublingAllGather, true, HalvingReduceScatter},
		{"uneven, 3 ranks", chosen, []int{1, 9, 2}, 100, BruckAllGather, true, PairwiseReduceScatter},
		{"uneven, middling", chosen, []int{30, 60, 30}, 1000, bothWays, false, PairwiseReduceScatter},
		{"the longest that go straight to their owners", chosen, []int{64, 64, 64}, 1000, bothWays, false, PairwiseReduceScatter},
		{"a little longer", chosen, []int{65, 65, 65}, 1000, bothWays, false, pipelined},
		{"uneven and long", chosen, []int{100, 200, 100, 200}, 1000, bothWays, false, pipelined},
		{"2 ranks", chosen, []int{1, 9}, 100, ring, false, PairwiseReduceScatter},
		{"one long", chosen, []int{1, 1024, 1, 1}, 0, bothWays, false, pipelined},
		{"one long, nearby", nearby, []int{1, 1024, 1, 1}, 0, ring, false, PairwiseReduceScatter},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.lengths {
				c.lengths[i] *= kilo
			}
			blocks := blocks(c.lengths...)
			for rank := range blocks {
				got, joins := c.planner.AllGatherV(nil, rank, blocks, 1, c.joined*kilo)
				if joins != c.joins || !slices.Equal(got, c.gather(nil, rank, blocks)) {
					t.Errorf("rank %d gathers by %v, joined: %v", rank, got, joins)
				}
				got, joins = c.planner.ReduceScatter(nil, rank, blocks, 1, false, c.joined*kilo)
				want := c.scatter(nil, rank, blocks)
				if joins == slices.Equal(want, PairwiseReduceScatter(nil, rank, blocks)) || !slices.Equal(got, want) {
					t.Errorf("rank %d reduces by %v, joined: %v", rank, got, joins)
				}
				if got, joins = c.planner.ReduceScatter(nil, rank, blocks, 1, true, c.joined*kilo); joins ||
					!slices.Equal(got, OrderedReduceScatter(nil, rank, blocks)) {
					t.Errorf("rank %d reduces in order by %v, joined: %v", rank, got, joins)
				}
			}
		})
	}
}

// Of a long vector both neighbours are sent as much, and what goes to one is never far behind what goes to the other.
func TestBothDirectionsAreUnderWay(t *testing.T) {
	const size, elem = 5, 1 << 10
	for _, p := range []Plan{chosen.AllReduce(1, size, 1<<20, elem, false), chosen.AllGather(nil, 1, EqualBlocks(size, 1<<20), elem)} {
		sent := map[int]int{}
		for _, s := range p {
			sent[s.To] += s.Send.Len() * elem
			if ahead := sent[2] - sent[0]; s.From != 2-s.To || ahead < -2*choice.Network.MostOneWay || ahead > 2*choice.Network.MostOneWay {
				t.Fatalf("%v: %d bytes ahead", s, ahead)
			}
		}
		if len(sent) != 2 || sent[0] == 0 || sent[0]-sent[2] > len(p)*elem || sent[2]-sent[0] > len(p)*elem {
			t.Errorf("sent %v", sent)
		}
	}
}
