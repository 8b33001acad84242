package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/choice"
)

func TestRootedPlans(t *testing.T) {
	all := []Planner{chosen}
	for _, way := range []string{"linear", "binomial", "pipeline"} {
		all = append(all, tuned(t, "broadcast="+way+";reduce="+way))
	}
	rapid.Check(t, func(t *rapid.T) {
		size, n := drawSize(t), rapid.IntRange(0, 40).Draw(t, "n")
		root := rapid.IntRange(0, size-1).Draw(t, "root")
		chosen := rapid.SampledFrom(all).Draw(t, "choices")

		var vec [][]element
		for _, elem := range []int{1, 16 * choice.ChunkSize} {
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
				vec, plans := own(size, n), plansOf(size, func(r int) Plan { return chosen.Reduce(r, size, n, elem, root, ordered) })
				simulate(t, plans, vec, vec)
				work := nothing(size, n)
				for r := range work {
					if r == root || !plans[r].Combines() { // in its own vector
						work[r] = own(size, n)[r]
					} else {
						checkInput(t, plans[r])
					}
				}
				simulateApart(t, plans, own(size, n), work, work)
				for i, e := range vec[root] {
					if !complete(e, size, ordered) || !slices.Equal(e, work[root][i]) {
						t.Fatalf("reduce: element %d holds %v, or %v", i, e, work[root][i])
					}
				}
			}
		}
	})
}

// A broadcast writes nothing into the vector of root, which may be memory that cannot be written.
func TestBroadcastsLeaveRootAlone(t *testing.T) {
	const n = 1 << 10
	for _, way := range choice.Messages.Free("broadcast") {
		c := tuned(t, "broadcast="+string(way))
		for size := 1; size <= 33; size++ {
			for root := range size {
				p := c.Broadcast(root, size, n, 1, root)
				if slices.ContainsFunc(p, func(s Step) bool { return s.From != None }) {
					t.Fatalf("%s, %d ranks: root %d receives: %v", way, size, root, p)
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

// The messages of a pipeline grow with the vector, and so does their number. Where a tree is chosen no more, there
// would be several.
func TestMessagesOfPipelines(t *testing.T) {
	for _, c := range []struct{ ranks, limit, bytes, messages int }{
		{1, choice.Any, 1 << 20, 1},
		{2, choice.Any, 1 << 20, 1},
		{3, 64 << 10, 64 << 10, 2},
		{4, 64 << 10, 1 << 20, 11},
		{4, 64 << 10, 16 << 20, 45},
		{4, 64 << 10, 1 << 30, 362},
		{8, 71619, 1 << 20, 19},
		{8, 71619, 1 << 30, 627},
		{64, 227813, 1 << 20, 62},
	} {
		if got := chosen.Ways("broadcast", c.ranks)[0].UpTo; got != c.limit {
			t.Errorf("%d ranks take a tree up to %d bytes, want %d", c.ranks, got, c.limit)
		}
		if got := chainMessages(c.ranks, c.bytes, 1); got != c.messages {
			t.Errorf("%d ranks send %d bytes in %d messages, want %d", c.ranks, c.bytes, got, c.messages)
		}
		const elem = 4
		if c.ranks > 2 {
			if got := messagesFrom(chosen.Broadcast(0, c.ranks, 1<<20, elem, 0)); got != chainMessages(c.ranks, 1<<20, elem) {
				t.Errorf("%d ranks: root sends %d messages", c.ranks, got)
			}
			if limit := chosen.Ways("broadcast", c.ranks)[0].UpTo; chainMessages(c.ranks, limit, 1) < 2 || chosen.Choose("reduce", c.ranks, limit) != "binomial" ||
				chosen.Choose("reduce", c.ranks, limit+1) == "binomial" {
				t.Errorf("%d ranks: %d bytes are not the limit", c.ranks, limit)
			}
		}
	}
}

// An operation that does not commute is combined in order of rank, however long the vector is, and whatever the way.
func TestOrderedReductionsTakeNoChain(t *testing.T) {
	c := tuned(t, "all_reduce=ring")
	for rank := range 5 {
		want := OrderedReduce(rank, 5, 1<<20, 2)
		if got := chosen.Reduce(rank, 5, 1<<20, 16, 2, true); !slices.Equal(got, want) {
			t.Errorf("rank %d takes %v, want %v", rank, got, want)
		}
		if got := c.AllReduce(rank, 5, 1<<20, 16, true); !slices.Equal(got, HalvingAllReduce(rank, 5, 1<<20)) {
			t.Errorf("rank %d takes %v in an all-reduce", rank, got)
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
