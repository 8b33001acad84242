package plan

import (
	"fmt"
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
		"ring":      {Ring{}.AllReduce, false},
		"both ways": {Ring{BothWays: true}.AllReduce, false},
		"in turn":   {Ring{BothWays: true, Longest: 2}.AllReduce, false},
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
		"ring":      {Ring{}.ReduceScatter, false},
		"pipelined": {Ring{Longest: 2}.ReduceScatter, false},
		"both ways": {Ring{BothWays: true, Longest: 1}.ReduceScatter, false},
		"chosen for long blocks": {func(p Plan, rank int, blocks []Range) Plan {
			p, _ = chosen.ReduceScatter(p, rank, blocks, 64<<10, false, choice.Any)
			return p
		}, false},
		"chosen for short blocks": {func(p Plan, rank int, blocks []Range) Plan {
			p, _ = chosen.ReduceScatter(p, rank, blocks, 1, false, choice.Any)
			return p
		}, false},
		"chosen in order": {func(p Plan, rank int, blocks []Range) Plan {
			p, _ = chosen.ReduceScatter(p, rank, blocks, 64<<10, true, choice.Any)
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

// Plans that overwrite all blocks need no copy of the vector: their steps say where they use a rank's input.
func TestReduceScatterOfInputElsewhere(t *testing.T) {
	for name, algorithm := range map[string]func(Plan, int, []Range) Plan{
		"halving":   HalvingReduceScatter,
		"pipelined": Ring{Longest: 2}.ReduceScatter,
		"both ways": Ring{BothWays: true, Longest: 1}.ReduceScatter,
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			size := rapid.IntRange(2, 17).Draw(t, "size")
			blocks, n := drawBlocks(t, size)
			plans := plansOf(size, func(r int) Plan { return algorithm(nil, r, blocks) })
			work := nothing(size, n)
			simulateApart(t, plans, own(size, n), work, work)
			for r, b := range blocks {
				checkInput(t, plans[r])
				for i, e := range work[r][b.Lo:b.Hi] {
					if !complete(e, size, false) {
						t.Fatalf("rank %d element %d of its block holds %v", r, i, e)
					}
				}
			}
		}))
	}
}

// A rank alone receives nothing, so nothing would bring its block into a buffer of all blocks.
func TestReduceScatterOfOneRank(t *testing.T) {
	for _, way := range []string{"halving", "pipeline"} {
		if p, join := tuned(t, "reduce_scatter="+way).ReduceScatter(nil, 0, []Range{{0, 5}}, 4, false, choice.Any); join {
			t.Errorf("%s joins the block of one rank: %v", way, p)
		}
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
		var vec [][]element
		for _, algorithm := range []func(p Plan, rank int, blocks []Range) Plan{
			BruckAllGather, DoublingAllGather, PairwiseAllGather, Ring{}.AllGather, Ring{Longest: 2}.AllGather, Ring{BothWays: true}.AllGather,
		} {
			vec = own(size, n)
			simulate(t, plansOf(size, func(r int) Plan { return algorithm(nil, r, blocks) }), vec, vec)
			checkGathered(t, vec, blocks)
		}
		for _, elem := range []int{1, 64 << 10, 4 * choice.ChunkSize} {
			vec = own(size, n)
			simulate(t, plansOf(size, func(r int) Plan { return chosen.AllGather(nil, r, blocks, elem) }), vec, vec)
			checkGathered(t, vec, blocks)
		}

		n = rapid.IntRange(0, 3).Draw(t, "n")
		blocks = EqualBlocks(size, n)
		for _, elem := range []int{1, 4 * choice.ChunkSize} {
			vec = own(size, size*n)
			simulate(t, plansOf(size, func(r int) Plan { return chosen.AllGather(nil, r, blocks, elem) }), vec, vec)
			checkGathered(t, vec, blocks)
		}
	})
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

func ExampleRing_AllReduce() {
	for _, step := range (Ring{}).AllReduce(1, 3, 6) {
		fmt.Println(step)
	}
	// Output:
	// send [0:2]→2 reduce left [4:6]←0
	// send [4:6]→2 reduce left [2:4]←0
	// send [2:4]→2 recv [0:2]←0
	// send [0:2]→2 recv [4:6]←0
}

func ExampleRing_AllGather() {
	for _, step := range (Ring{BothWays: true}).AllGather(nil, 1, EqualBlocks(3, 2)) {
		fmt.Println(step)
	}
	// Output:
	// send [2:3]→2 recv [0:1]←0
	// send [3:4]→0 recv [5:6]←2
	// send [0:1]→2 recv [4:5]←0
	// send [5:6]→0 recv [1:2]←2
}
