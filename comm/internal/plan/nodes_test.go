package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/choice"
)

func TestRailsAndSlices(t *testing.T) {
	for _, c := range []struct {
		machines string // of every rank
		root     int    // on rail 0
		members  [][]int
		inOrder  bool
		rails    [][]int   // of a long vector
		slices   [][]Range // of [0, 9), for every rank
	}{
		{
			"aabb", 0, [][]int{{0, 1}, {2, 3}}, true, [][]int{{0, 2}, {1, 3}},
			[][]Range{{{0, 5}, {5, 9}}, {{0, 5}, {5, 9}}, {{0, 5}, {5, 9}}, {{0, 5}, {5, 9}}},
		},
		{
			"abab", 3, [][]int{{0, 2}, {1, 3}}, false, [][]int{{0, 3}, {2, 1}},
			[][]Range{{{0, 5}, {5, 9}}, {{5, 9}, {0, 5}}, {{0, 5}, {5, 9}}, {{5, 9}, {0, 5}}},
		},
		{
			"aabbb", 3, [][]int{{0, 1}, {2, 3, 4}}, true, [][]int{{0, 3}, {1, 4}},
			[][]Range{{{0, 5}, {5, 9}}, {{0, 5}, {5, 9}}, {{9, 9}, {0, 5}, {5, 9}}, {{9, 9}, {0, 5}, {5, 9}}, {{9, 9}, {0, 5}, {5, 9}}},
		},
		{
			"abb", 2, [][]int{{0}, {1, 2}}, true, [][]int{{0, 2}},
			[][]Range{{{0, 9}}, {{9, 9}, {0, 9}}, {{9, 9}, {0, 9}}},
		},
		{"a", 0, [][]int{{0}}, true, [][]int{{0}}, [][]Range{{{0, 9}}}},
	} {
		t.Run(fmt.Sprintf("%s from %d", c.machines, c.root), func(t *testing.T) {
			for r := range c.machines {
				n := Placed(r, []rune(c.machines)).RootedAt(c.root)
				if !reflect.DeepEqual(n.Members, c.members) || n.InOrder() != c.inOrder || n.Here()[n.LocalRank] != r || n.Of(r) != n.Node {
					t.Errorf("rank %d is in %+v", r, n)
				}
				if got := chosen.Rails(n, oneRail+1); got != len(c.rails) || chosen.Rails(n, oneRail) != 1 {
					t.Errorf("rank %d sees %d rails, and %d for a short vector", r, got, chosen.Rails(n, oneRail))
				}
				var mine []int
				for _, rail := range c.rails {
					if slices.Contains(rail, r) {
						mine = rail
					}
				}
				if got := n.Rail(len(c.rails)); !slices.Equal(got, mine) {
					t.Errorf("rank %d is on rail %v, want %v", r, got, mine)
				}
				if got := n.Slices(Range{0, 9}, len(c.rails)); !slices.Equal(got, c.slices[r]) {
					t.Errorf("rank %d sees slices %v, want %v", r, got, c.slices[r])
				}
			}
		})
	}
}

// drawNodes are the Nodes of every rank.
// chosen is what is chosen without a tuning, oneRail the longest vector that one rail carries then.
var (
	chosen  = NewPlanner(choice.Network, nil)
	oneRail = chosen.Ways("nodes", 2)[0].UpTo
)

func drawNodes(t *rapid.T) []Nodes {
	machines := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 12).Draw(t, "machines")
	root := rapid.IntRange(0, len(machines)-1).Draw(t, "root")
	all := make([]Nodes, len(machines))
	for r := range all {
		all[r] = Placed(r, machines).RootedAt(root)
	}
	return all
}

// Wherever ranks are, those of a node have all of a vector between them, and ranks of one rail the same slice of it.
func TestRailsCarryEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawNodes(t)
		bytes := rapid.SampledFrom([]int{1, oneRail + 1}).Draw(t, "bytes")
		r := Range{rapid.IntRange(0, 3).Draw(t, "lo"), rapid.IntRange(3, 40).Draw(t, "hi")}
		for rank, n := range all {
			rails := chosen.Rails(n, bytes)
			parts := n.Slices(r, rails)
			covered := make([]int, r.Hi)
			for _, p := range parts {
				for i := p.Lo; i < p.Hi; i++ {
					covered[i]++
				}
			}
			for i, times := range covered {
				if times != min(1, max(0, i-r.Lo+1)) {
					t.Fatalf("rank %d: element %d of %v is in %d of %v", rank, i, r, times, parts)
				}
			}
			rail := n.Rail(rails)
			if rail == nil && parts[n.LocalRank].Len() > 0 {
				t.Fatalf("rank %d is on no rail and has %v", rank, parts[n.LocalRank])
			}
			for k, peer := range rail {
				other := all[peer]
				if other.Node != k || !slices.Equal(other.Rail(rails), rail) || other.Slices(r, rails)[other.LocalRank] != parts[n.LocalRank] {
					t.Fatalf("rank %d is on rail %v with rank %d, which has %v of %v", rank, rail, peer, other.Slices(r, rails), r)
				}
			}
		}
	})
}

// The three stages of an all-reduce leave every rank with what all have, once; in order of rank where nodes are.
func TestAllReduceByNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawNodes(t)
		size, n := len(all), rapid.IntRange(0, 30).Draw(t, "n")
		rails := chosen.Rails(all[0], rapid.SampledFrom([]int{1, oneRail + 1}).Draw(t, "bytes"))
		ordered := all[0].InOrder() && rapid.Bool().Draw(t, "ordered")
		vec := own(size, n)
		whole := own(size, n)
		for r, at := range all { // in memory
			part := at.Slices(Range{0, n}, rails)[at.LocalRank]
			for i := part.Lo; i < part.Hi; i++ {
				whole[r][i] = slices.Clone(element(at.Here()))
			}
		}
		simulate(t, plansOf(size, func(r int) Plan {
			at := all[r]
			part, rail := at.Slices(Range{0, n}, rails)[at.LocalRank], at.Rail(rails)
			if rail == nil {
				return nil
			}
			p := chosen.AllReduce(at.Node, len(at.Members), part.Len(), 4<<10, ordered).Among(rail)
			for i := range p {
				s := &p[i]
				s.Send, s.Recv = Range{s.Send.Lo + part.Lo, s.Send.Hi + part.Lo}, Range{s.Recv.Lo + part.Lo, s.Recv.Hi + part.Lo}
			}
			return p
		}), whole, whole)
		for r, at := range all { // in memory again
			for place, part := range at.Slices(Range{0, n}, rails) {
				copy(vec[r][part.Lo:part.Hi], whole[at.Here()[place]][part.Lo:part.Hi])
			}
			for i, e := range vec[r] {
				if !complete(e, size, ordered) || !slices.Equal(e, vec[0][i]) {
					t.Fatalf("rank %d of %v: element %d holds %v, that of rank 0 %v", r, at.Members, i, e, vec[0][i])
				}
			}
		}
	})
}

func TestBlocksOfNodes(t *testing.T) {
	n := Placed(3, []string{"a", "b", "a", "c", "b", "a"})
	if got := n.Order(); !slices.Equal(got, []int{0, 2, 5, 1, 4, 3}) {
		t.Errorf("ranks by node are %v", got)
	}
	if got := n.Blocks(10); !slices.Equal(got, []Range{{0, 30}, {30, 50}, {50, 60}}) {
		t.Errorf("blocks are %v", got)
	}
	if least, most := n.Sizes(); least != 1 || most != 3 {
		t.Errorf("nodes have %d to %d ranks", least, most)
	}
	if !chosen.Together(n, choice.Network.MostGrouped/3) || chosen.Together(n, choice.Network.MostGrouped/3+1) {
		t.Error("what the largest node has is to travel together as long as it is short")
	}
	spread := Placed(4, []string{"a", "b", "a", "c", "b", "a"}).Spread(0)
	if want := [][]int{{0, 2, 5}, {1}, {3}, {4}}; !reflect.DeepEqual(spread.Members, want) || spread.Node != 3 || spread.LocalRank != 0 {
		t.Errorf("spread but for node 0 they are %+v, want %v", spread, want)
	}
}

func TestPlansAmongOthers(t *testing.T) {
	p := Plan{{To: 1, From: None}, {To: 0, From: 2}, {To: None, From: 1}}
	p = p.Among([]int{4, 7, 5})
	if want := (Plan{{To: 7, From: None}, {To: 4, From: 5}, {To: None, From: 7}}); !slices.Equal(p, want) {
		t.Errorf("got %v, want %v", p, want)
	}
	p = p.Without([]int{7, 4})
	if want := (Plan{{To: None, From: 5}}); !slices.Equal(p, want) {
		t.Errorf("without 7 and 4 it is %v, want %v", p, want)
	}
}
