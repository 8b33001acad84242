package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/choice"
)

func (s Step) String() string {
	out := ""
	if s.To != None {
		out = fmt.Sprintf("send [%d:%d]→%d", s.Send.Lo, s.Send.Hi, s.To)
	}
	if s.From != None {
		if out != "" {
			out += " "
		}
		verb := [...]string{Replace: "recv", Swap: "swap", Left: "reduce left", Right: "reduce right"}[s.Merge]
		out += fmt.Sprintf("%s [%d:%d]←%d", verb, s.Recv.Lo, s.Recv.Hi, s.From)
	}
	return out
}

func plansOf(size int, of func(rank int) Plan) []Plan {
	plans := make([]Plan, size)
	for r := range plans {
		plans[r] = of(r)
	}
	return plans
}

func drawSize(t *rapid.T) int { return rapid.IntRange(1, 17).Draw(t, "size") }

func drawBlocks(t *rapid.T, size int) (blocks []Range, n int) {
	for i := range size {
		hi := n + rapid.IntRange(0, 5).Draw(t, fmt.Sprint("block", i))
		blocks = append(blocks, Range{n, hi})
		n = hi
	}
	return blocks, n
}

func TestAllReduceCombinesEveryRankOnceEverywhere(t *testing.T) {
	for name, c := range map[string]struct {
		algorithm func(rank, size, n int) Plan
		ordered   bool
	}{
		"ring":      {func(rank, size, n int) Plan { return RingAllReduce(rank, size, n, 0) }, false},
		"both ways": {func(rank, size, n int) Plan { return RingAllReduce(rank, size, n, 1) }, false},
		"in turn":   {func(rank, size, n int) Plan { return RingAllReduce(rank, size, n, 3) }, false},
		"doubling":  {DoublingAllReduce, true},
		"pairwise":  {PairwiseAllReduce, true},
		"halving":   {HalvingAllReduce, true},
		"chosen":    {func(rank, size, n int) Plan { return chosen.AllReduce(rank, size, n, 4<<10, false) }, false},
		"long":      {func(rank, size, n int) Plan { return chosen.AllReduce(rank, size, n, 1<<20, false) }, false},
		"ordered":   {func(rank, size, n int) Plan { return chosen.AllReduce(rank, size, n, 4<<10, true) }, true},
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			size, n := drawSize(t), rapid.IntRange(0, 40).Draw(t, "n")
			plans := plansOf(size, func(r int) Plan { return c.algorithm(r, size, n) })
			vec := own(size, n)
			for r, p := range plans {
				vec[r] = append(vec[r], make([]element, max(p.Extent()-n, 0))...)
			}
			simulate(t, plans, vec, vec)
			for r := range vec {
				for i, e := range vec[r][:n] {
					if !complete(e, size, c.ordered) {
						t.Fatalf("rank %d element %d holds %v", r, i, e)
					}
					if !slices.Equal(e, vec[0][i]) {
						t.Fatalf("element %d is combined as %v on rank %d and as %v on rank 0", i, e, r, vec[0][i])
					}
				}
			}
		}))
	}
}

func TestReduceScatterLeavesEveryBlockWithItsOwner(t *testing.T) {
	for name, c := range map[string]struct {
		algorithm func(Plan, int, []Range) Plan
		ordered   bool
	}{
		"pairwise": {PairwiseReduceScatter, false}, "ordered": {OrderedReduceScatter, true},
		"halving":   {HalvingReduceScatter, false},
		"pipelined": {func(p Plan, rank int, blocks []Range) Plan { return PipelinedReduceScatter(p, rank, blocks, 2) }, false},
		"chosen for long blocks": {func(p Plan, rank int, blocks []Range) Plan {
			p, _, _ = chosen.ReduceScatter(p, rank, blocks, 64<<10, false, choice.Any)
			return p
		}, false},
		"ring":      {func(p Plan, rank int, blocks []Range) Plan { return RingReduceScatter(p, rank, blocks, 0) }, false},
		"both ways": {func(p Plan, rank int, blocks []Range) Plan { return RingReduceScatter(p, rank, blocks, 2) }, false},
		"chosen for short blocks": {func(p Plan, rank int, blocks []Range) Plan {
			p, _, _ = chosen.ReduceScatter(p, rank, blocks, 1, false, choice.Any)
			return p
		}, false},
		"chosen in order": {func(p Plan, rank int, blocks []Range) Plan {
			p, _, _ = chosen.ReduceScatter(p, rank, blocks, 64<<10, true, choice.Any)
			return p
		}, true},
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			size := drawSize(t)
			blocks, n := drawBlocks(t, size)
			vec := own(size, n)
			simulate(t, plansOf(size, func(r int) Plan { return c.algorithm(nil, r, blocks) }), vec, vec)
			for r, b := range blocks {
				for i, e := range vec[r][b.Lo:b.Hi] {
					if !complete(e, size, c.ordered) {
						t.Fatalf("rank %d element %d of its block holds %v", r, i, e)
					}
				}
			}
		}))
	}
}

// What is sent may lie elsewhere than what is received.
func TestOnlyTheOwnBlockIsWritten(t *testing.T) {
	blocks := []Range{{0, 2}, {2, 2}, {2, 7}}
	for r := range blocks {
		for _, s := range append(PairwiseReduceScatter(nil, r, blocks), OrderedReduceScatter(nil, r, blocks)...) {
			if s.From != None && s.Recv != blocks[r] || s.To != None && s.Send == blocks[r] && s.Send.Len() > 0 {
				t.Errorf("rank %d owns %v: %v", r, blocks[r], s)
			}
		}
	}
}

func TestAllGatherCollectsEveryBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := drawSize(t)
		blocks, n := drawBlocks(t, size)
		vec := own(size, n)
		simulate(t, plansOf(size, func(r int) Plan { return RingAllGather(nil, r, blocks, 0) }), vec, vec)
		checkGathered(t, vec, blocks)
		for _, algorithm := range []func(p Plan, rank int, blocks []Range) Plan{
			BruckAllGather, DoublingAllGather, PairwiseAllGather,
			func(p Plan, rank int, blocks []Range) Plan { return PipelinedAllGather(p, rank, blocks, 2) },
		} {
			vec = own(size, n)
			simulate(t, plansOf(size, func(r int) Plan { return algorithm(nil, r, blocks) }), vec, vec)
			checkGathered(t, vec, blocks)
		}
		for _, elem := range []int{1, 64 << 10, 4 * ChunkSize} {
			vec = own(size, n)
			simulate(t, plansOf(size, func(r int) Plan { return chosen.AllGather(nil, r, blocks, elem) }), vec, vec)
			checkGathered(t, vec, blocks)
		}

		n = rapid.IntRange(0, 3).Draw(t, "n")
		blocks = EqualBlocks(size, n)
		for _, elem := range []int{1, 4 * ChunkSize} {
			vec = own(size, size*n)
			simulate(t, plansOf(size, func(r int) Plan { return chosen.AllGather(nil, r, blocks, elem) }), vec, vec)
			checkGathered(t, vec, blocks)
		}
	})
}

// Every way of an operation that a tuning may name is carried out as itself. A line in Ways is not enough for that: a method of Choices
// must know the way.
func TestEveryWayIsCarriedOut(t *testing.T) {
	const size, n, elem = 8, 1 << 10, 4 << 10
	carriedOut := map[string]func(c Choices) any{
		"all_reduce": func(c Choices) any { return c.AllReduce(1, size, n, elem, false) },
		"all_gather": func(c Choices) any { return c.AllGather(nil, 1, EqualBlocks(size, n), elem) },
		"reduce_scatter": func(c Choices) any {
			p, _, _ := c.ReduceScatter(nil, 1, EqualBlocks(size, n), elem, false, choice.Any)
			return p
		},
		"reduce":     func(c Choices) any { return c.Reduce(6, size, n, elem, 0, false) },
		"broadcast":  func(c Choices) any { return c.Broadcast(3, size, n, elem, 0) },
		"all_to_all": func(c Choices) any { return c.Together("all_to_all", size, n*elem) },
		"gather":     func(c Choices) any { return c.Together("gather", size, n*elem) },
		"scatter":    func(c Choices) any { return c.Together("scatter", size, n*elem) },
		"barrier":    func(c Choices) any { return c.Barrier(1, size) },
		"nodes":      func(c Choices) any { return c.Rails(Placed(0, []int{0, 0, 1, 1}), n*elem) },
	}
	for _, line := range Ways {
		names := Ways.Free(line.Op)
		if len(names) < 2 {
			continue
		}
		plan := carriedOut[line.Op]
		if plan == nil {
			t.Errorf("%s has the ways %q: say here how they are carried out", line.Op, names)
			continue
		}
		for _, other := range names {
			if other == line.Way {
				continue
			}
			var got [2]any
			for i, way := range []string{line.Way, other} {
				tuning, err := choice.Parse(line.Op+"="+way, Ways)
				if err != nil {
					t.Fatal(err)
				}
				got[i] = plan(NewChoices(Ways, tuning))
			}
			if reflect.DeepEqual(got[0], got[1]) {
				t.Errorf("%s is carried out in the same way whether it is to be %s or %s", line.Op, line.Way, other)
			}
		}
	}
}

// A piece of a buffer uses the algorithm of the whole buffer, which Explain shows, whatever the length of the piece.
func TestPiecesUseTheAlgorithmOfTheWhole(t *testing.T) {
	const size, n, pieces = 4, 4 << 20, 8
	c := chosen
	c.Pieces = pieces
	short, long := chosen.AllReduce(1, size, n/pieces, 1, false), RingAllReduce(1, size, n/pieces, 1)
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
	nearby := NewChoices(WaysNearby, nil)
	tuned, err := choice.Parse("all_gather=ring;reduce_scatter=pairwise", Ways)
	if err != nil {
		t.Fatal(err)
	}
	ring := func(p Plan, rank int, blocks []Range) Plan { return RingAllGather(p, rank, blocks, 0) }
	bothWays := func(p Plan, rank int, blocks []Range) Plan { return RingAllGather(p, rank, blocks, 1) }
	inMessages := func(algorithm func(Plan, int, []Range, int) Plan, n int) func(Plan, int, []Range) Plan {
		return func(p Plan, rank int, blocks []Range) Plan { return algorithm(p, rank, blocks, n) }
	}
	for _, c := range []struct {
		name    string
		choices Choices
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
		{"a little longer", chosen, []int{65, 65, 65}, 1000, bothWays, false, inMessages(PipelinedReduceScatter, 33280)},
		{"uneven and long", chosen, []int{100, 200, 100, 200}, 1000, bothWays, false, inMessages(PipelinedReduceScatter, 40<<10)},
		{"2 ranks", chosen, []int{1, 9}, 100, ring, false, PairwiseReduceScatter},
		{"one long", chosen, []int{1, 1024, 1, 1}, 0, inMessages(PipelinedAllGather, 95326), false, inMessages(PipelinedReduceScatter, 95326)},
		{"one long, nearby", nearby, []int{1, 1024, 1, 1}, 0, ring, false, PairwiseReduceScatter},
		{"one long, tuned", NewChoices(Ways, tuned), []int{1, 1024, 1, 1}, 0, ring, false, PairwiseReduceScatter},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.lengths {
				c.lengths[i] *= kilo
			}
			blocks := blocks(c.lengths...)
			for rank := range blocks {
				got, joins := c.choices.AllGatherV(nil, rank, blocks, 1, c.joined*kilo)
				if joins != c.joins || !slices.Equal(got, c.gather(nil, rank, blocks)) {
					t.Errorf("rank %d gathers by %v, joined: %v", rank, got, joins)
				}
				got, joins, _ = c.choices.ReduceScatter(nil, rank, blocks, 1, false, c.joined*kilo)
				want := c.scatter(nil, rank, blocks)
				if joins == slices.Equal(want, PairwiseReduceScatter(nil, rank, blocks)) || !slices.Equal(got, want) {
					t.Errorf("rank %d reduces by %v, joined: %v", rank, got, joins)
				}
				if got, joins, _ = c.choices.ReduceScatter(nil, rank, blocks, 1, true, c.joined*kilo); joins ||
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
			if ahead := sent[2] - sent[0]; s.From != 2-s.To || ahead < -2*mostMessage || ahead > 2*mostMessage {
				t.Fatalf("%v: %d bytes ahead", s, ahead)
			}
		}
		if len(sent) != 2 || sent[0] == 0 || sent[0]-sent[2] > len(p)*elem || sent[2]-sent[0] > len(p)*elem {
			t.Errorf("sent %v", sent)
		}
	}
}

func TestRingsOfTwoAndOnOneMachine(t *testing.T) {
	for _, c := range []struct {
		choices Choices
		size    int
		want    string
	}{
		{chosen, 2, oneWay}, {chosen, 3, bothWays}, {chosen, 100, bothWays}, {NewChoices(WaysNearby, nil), 3, oneWay},
	} {
		for _, op := range []string{"all_reduce", "all_gather"} {
			if got := c.choices.Pick(op, c.size, 64<<20); got != c.want {
				t.Errorf("%s on %d ranks goes by %q, want %q", op, c.size, got, c.want)
			}
		}
	}
}

func checkGathered(t *rapid.T, vec [][]element, blocks []Range) {
	for r := range vec {
		for owner, b := range blocks {
			for i, e := range vec[r][b.Lo:b.Hi] {
				if !slices.Equal(e, element{owner}) {
					t.Fatalf("rank %d element %d of block %d holds %v", r, i, owner, e)
				}
			}
		}
	}
}

func TestRootedPlans(t *testing.T) {
	tuned, err := choice.Parse("broadcast=linear;reduce=linear", Ways)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		size, n := drawSize(t), rapid.IntRange(0, 5).Draw(t, "n")
		root := rapid.IntRange(0, size-1).Draw(t, "root")
		chosen := rapid.SampledFrom([]Choices{chosen, NewChoices(Ways, tuned)}).Draw(t, "choices")

		var vec [][]element
		for _, elem := range []int{1, 16 * ChunkSize} {
			vec = own(size, n)
			simulate(t, plansOf(size, func(r int) Plan { return chosen.Broadcast(r, size, n, elem, root) }), vec, vec)
			for r := range vec {
				for i, e := range vec[r] {
					if !slices.Equal(e, element{root}) {
						t.Fatalf("broadcast: rank %d element %d holds %v, want %d", r, i, e, root)
					}
				}
			}
			for _, ordered := range []bool{false, true} {
				vec = own(size, n)
				simulate(t, plansOf(size, func(r int) Plan { return chosen.Reduce(r, size, n, elem, root, ordered) }), vec, vec)
				for i, e := range vec[root] {
					if !complete(e, size, ordered) {
						t.Fatalf("reduce: element %d holds %v", i, e)
					}
				}
			}
		}
	})
}

// A chain is the same whatever the number of its messages: for any ranks and any root, and also if the messages are of different lengths,
// or empty. Every rank combines an element once at most, so that it can keep its vector.
func TestChains(t *testing.T) {
	for size := 1; size <= 17; size++ {
		for root := range size {
			for _, c := range []struct{ n, messages int }{{5, 1}, {5, 2}, {5, 5}, {0, 1}, {2, 4}, {size, 2}} {
				vec := own(size, c.n)
				plans := plansOf(size, func(r int) Plan { return ChainBroadcast(r, size, c.n, root, c.messages) })
				simulate(t, plans, vec, vec)
				for r := range vec {
					for i, e := range vec[r] {
						if !slices.Equal(e, element{root}) {
							t.Fatalf("%d ranks, %+v: rank %d element %d holds %v, want %d", size, c, r, i, e, root)
						}
					}
				}
				if sent := messagesFrom(plans[root]); size > 1 && sent != c.messages {
					t.Fatalf("%d ranks, %+v: root %d sends %d messages", size, c, root, sent)
				}

				vec = own(size, c.n)
				plans = plansOf(size, func(r int) Plan { return ChainReduce(r, size, c.n, root, c.messages) })
				simulate(t, plans, vec, vec)
				for i, e := range vec[root] {
					if !complete(e, size, false) {
						t.Fatalf("%d ranks, %+v: element %d holds %v", size, c, i, e)
					}
				}
				last := mod(root-1, size)
				for r, p := range plans {
					if want := c.n; r != last && p.Combined() != want || r == last && p.Combined() != 0 {
						t.Fatalf("%d ranks, %+v: rank %d combines %d elements, root is %d", size, c, r, p.Combined(), root)
					}
				}
			}
		}
	}
}

func messagesFrom(p Plan) (sent int) {
	for _, s := range p {
		if s.To != None {
			sent++
		}
	}
	return sent
}

// The messages of a pipeline grow with the vector, and so does their number. Where a tree is chosen no more, there are several.
func TestMessagesOfPipelines(t *testing.T) {
	for _, c := range []struct{ ranks, limit, bytes, messages int }{
		{1, choice.Any, 1 << 20, 1},
		{2, choice.Any, 1 << 20, 1},
		{3, 64 << 10, 64 << 10, 2},
		{4, 128 << 10, 1 << 20, 11},
		{4, 128 << 10, 16 << 20, 45},
		{4, 128 << 10, 1 << 30, 362},
		{8, 143239, 1 << 20, 19},
		{8, 143239, 1 << 30, 627},
		{64, 455627, 1 << 20, 62},
	} {
		if got := treeLimit(c.ranks); got != c.limit {
			t.Errorf("%d ranks take a tree up to %d bytes, want %d", c.ranks, got, c.limit)
		}
		if got := chainMessages(c.ranks, c.bytes); got != c.messages {
			t.Errorf("%d ranks send %d bytes in %d messages, want %d", c.ranks, c.bytes, got, c.messages)
		}
		const elem = 4
		if c.ranks > 2 {
			if got := messagesFrom(chosen.Broadcast(0, c.ranks, 1<<20, elem, 0)); got != chainMessages(c.ranks, elem<<20) {
				t.Errorf("%d ranks: root sends %d messages", c.ranks, got)
			}
			if limit := treeLimit(c.ranks); chainMessages(c.ranks, limit) < 2 || chosen.Pick("reduce", c.ranks, limit) != "binomial" ||
				chosen.Pick("reduce", c.ranks, limit+1) != "pipeline" {
				t.Errorf("%d ranks: %d bytes are not the limit", c.ranks, limit)
			}
		}
	}
	if got := NewChoices(WaysNearby, nil).Choice("broadcast", 5).String(); got != "binomial:2M,chain" {
		t.Errorf("on one machine, the choice for a broadcast is %s", got)
	}
}

// An operation that does not commute is combined in order of rank, however long the vector is.
func TestOrderedReductionsTakeNoChain(t *testing.T) {
	for rank := range 5 {
		want := OrderedReduce(rank, 5, 1<<20, 2)
		if got := chosen.Reduce(rank, 5, 1<<20, 16, 2, true); !slices.Equal(got, want) {
			t.Errorf("rank %d takes %v, want %v", rank, got, want)
		}
	}
}

func TestScansCombineTheRanksBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n := drawSize(t), rapid.IntRange(0, 3).Draw(t, "n")
		inclusive, exclusive := own(size, n), own(size, n)
		simulate(t, plansOf(size, func(r int) Plan { return DoublingScan(r, size, n) }), inclusive, inclusive)
		simulate(t, plansOf(size, func(r int) Plan { return DoublingExScan(r, size, n) }), exclusive, exclusive)
		for r := range size {
			for i := range n {
				below := upTo(r)
				if r == 0 {
					below = element{0} // keeps what it had
				}
				if !slices.Equal(inclusive[r][i], upTo(r+1)) || !slices.Equal(exclusive[r][i], below) {
					t.Fatalf("rank %d element %d holds %v and %v", r, i, inclusive[r][i], exclusive[r][i])
				}
			}
		}
	})
}

// tagged returns for every rank a vector of n(rank) elements {rank, index}.
func tagged(size int, n func(rank int) int) [][]element {
	vec := make([][]element, size)
	for r := range vec {
		for i := range n(r) {
			vec[r] = append(vec[r], element{r, i})
		}
	}
	return vec
}

func TestGatherAndScatterOfUnequalBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := drawSize(t)
		root := rapid.IntRange(0, size-1).Draw(t, "root")
		blocks, n := drawBlocks(t, size)
		parts := tagged(size, func(r int) int { return blocks[r].Len() })
		whole := make([][]element, size)
		whole[root] = make([]element, n)
		simulate(t, plansOf(size, func(r int) Plan {
			if r != root {
				return LinearGather(nil, r, root, blocks[r].Len(), nil) // lengths of others are known to root alone
			}
			return LinearGather(nil, r, root, blocks[r].Len(), blocks)
		}), parts, whole)
		if want := slices.Concat(parts...); !slices.EqualFunc(whole[root], want, slices.Equal) {
			t.Fatalf("gathered %v, want %v", whole[root], want)
		}
		back := make([][]element, size)
		for r := range back {
			back[r] = make([]element, blocks[r].Len())
		}
		simulate(t, plansOf(size, func(r int) Plan {
			if r != root {
				return LinearScatter(nil, r, root, blocks[r].Len(), nil)
			}
			return LinearScatter(nil, r, root, blocks[r].Len(), blocks)
		}), whole, back)
		for r := range parts {
			if !slices.EqualFunc(back[r], parts[r], slices.Equal) {
				t.Fatalf("rank %d got %v back, want %v", r, back[r], parts[r])
			}
		}
	})
}

func TestGatherAndScatterInATree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n := drawSize(t), rapid.IntRange(0, 3).Draw(t, "n")
		root := rapid.IntRange(0, size-1).Draw(t, "root")
		blocks := EqualBlocks(size, n)
		vec := own(size, size*n)
		simulate(t, plansOf(size, func(r int) Plan { return BinomialGather(r, size, n, root) }), vec, vec)
		checkGathered(t, vec[root:root+1], blocks)

		whole := tagged(size, func(int) int { return size * n })
		simulate(t, plansOf(size, func(r int) Plan { return BinomialScatter(r, size, n, root) }), whole, whole)
		for r, b := range blocks {
			for i, e := range whole[r][b.Lo:b.Hi] {
				if !slices.Equal(e, element{root, b.Lo + i}) {
					t.Fatalf("rank %d got %v at %d of its block, root %d", r, e, i, root)
				}
			}
		}
	})
}

func TestBruckAllToAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n := drawSize(t), rapid.IntRange(0, 3).Draw(t, "n")
		vec := tagged(size, func(int) int { return (size + size/2*2) * n })
		simulate(t, plansOf(size, func(r int) Plan { return BruckAllToAll(r, size, n) }), vec, vec)
		for r := range size {
			for i := range size {
				for k := range n {
					if want := (element{mod(r-i, size), i*n + k}); !slices.Equal(vec[r][i*n+k], want) {
						t.Fatalf("rank %d has %v at place %d, want %v", r, vec[r][i*n+k], i, want)
					}
				}
			}
		}
	})
}

func TestAllToAllTransposesBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := drawSize(t)
		send, recv := make([][]Range, size), make([][]Range, size)
		var sizes []int
		for r := range size {
			var n int
			send[r], n = drawBlocks(t, size)
			sizes = append(sizes, n)
		}
		in, out := tagged(size, func(r int) int { return sizes[r] }), make([][]element, size)
		want := make([][]element, size)
		for r := range size {
			for from := range size {
				b := send[from][r]
				lo := len(want[r])
				want[r] = append(want[r], in[from][b.Lo:b.Hi]...)
				recv[r] = append(recv[r], Range{lo, len(want[r])})
			}
			out[r] = make([]element, len(want[r]))
		}
		simulate(t, plansOf(size, func(r int) Plan { return PairwiseAllToAll(nil, r, send[r], recv[r]) }), in, out)
		for r := range want {
			if !slices.EqualFunc(out[r], want[r], slices.Equal) {
				t.Fatalf("rank %d got %v, want %v", r, out[r], want[r])
			}
		}
	})
}

// Nobody leaves the barrier before everybody has entered it: in the graph of messages every rank's end must be
// reachable from every rank's start.
func TestBarrierHearsOfEverybody(t *testing.T) {
	for size := 1; size <= 33; size++ {
		plans := plansOf(size, func(r int) Plan { return DisseminationBarrier(r, size) })
		heard := make([][]bool, size)
		for r := range heard {
			heard[r] = make([]bool, size)
			heard[r][r] = true
		}
		for s := range plans[0] {
			before := make([][]bool, size)
			for r := range heard {
				before[r] = slices.Clone(heard[r])
			}
			for r := range plans {
				for who, ok := range before[plans[r][s].From] {
					heard[r][who] = heard[r][who] || ok
				}
			}
		}
		for r := range heard {
			if slices.Contains(heard[r], false) {
				t.Errorf("size %d: rank %d leaves without having heard of everybody: %v", size, r, heard[r])
			}
		}
		simulate(t, plans, own(size, 0), own(size, 0))
	}
}

// A rank has sent all its messages before it waits for any, and waits for one of each other rank.
func TestPairwiseBarrier(t *testing.T) {
	for size := 1; size <= 9; size++ {
		for rank := range size {
			p := PairwiseBarrier(rank, size)
			sends, receives := p[:size-1], p[size-1:]
			var to, from []int
			for i := range sends {
				if sends[i].From != None || receives[i].To != None {
					t.Errorf("rank %d of %d: %v", rank, size, p)
				}
				to, from = append(to, sends[i].To), append(from, receives[i].From)
			}
			others := slices.Delete(upTo(size), rank, rank+1)
			if len(receives) != size-1 || !slices.Equal(slices.Sorted(slices.Values(to)), others) || !slices.Equal(slices.Sorted(slices.Values(from)), others) {
				t.Errorf("rank %d of %d sends to %v and receives from %v", rank, size, to, from)
			}
		}
	}
}

func TestEvenBlocksCoverTheVector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(0, 1000).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "size")
		at := 0
		for i := range size {
			b := Even(n, size, i)
			if b.Lo != at || b.Len() < n/size || b.Len() > n/size+1 {
				t.Fatalf("block %d of %d in %d elements is %v, expected to start at %d", i, size, n, b, at)
			}
			at = b.Hi
		}
		if at != n {
			t.Fatalf("blocks end at %d, vector at %d", at, n)
		}
	})
}

func ExampleRingAllReduce() {
	for _, step := range RingAllReduce(1, 3, 6, 0) {
		fmt.Println(step)
	}
	// Output:
	// send [0:2]→2 reduce left [4:6]←0
	// send [4:6]→2 reduce left [2:4]←0
	// send [2:4]→2 recv [0:2]←0
	// send [0:2]→2 recv [4:6]←0
}

func ExampleRingAllGather() {
	for _, step := range RingAllGather(nil, 1, EqualBlocks(3, 2), 1) {
		fmt.Println(step)
	}
	// Output:
	// send [2:3]→2 recv [0:1]←0
	// send [3:4]→0 recv [5:6]←2
	// send [0:1]→2 recv [4:5]←0
	// send [5:6]→0 recv [1:2]←2
}
