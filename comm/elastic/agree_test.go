package elastic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAgree(t *testing.T) {
	has := func(round, number uint64) holding { return holding{commitID: commitID{round, number}} }
	part := holding{partial: true}
	for _, c := range []struct {
		all  []holding
		want agreement
	}{
		{[]holding{{}}, agreement{1, []int{0}, nil, 0}},
		{[]holding{{}, {}, {}}, agreement{1, []int{0}, []int{1, 2}, 0}},
		{[]holding{has(1, 7), has(1, 7)}, agreement{7, []int{0, 1}, nil, 0}},
		{[]holding{{}, has(1, 7), has(1, 8)}, agreement{8, []int{2}, []int{0, 1}, 0}},                 // one was quicker
		{[]holding{has(1, 9), has(2, 8), has(2, 8), {}}, agreement{8, []int{1, 2}, []int{0, 3}, 0}},   // rank 0 was cut off in round 1
		{[]holding{has(0, 3), has(0, 3), {}, has(0, 2)}, agreement{3, []int{0, 1}, []int{2, 3}, 0}},   // without gorun
		{[]holding{part, has(1, 1), {}}, agreement{1, []int{1}, []int{0, 2}, 0}},                      // a death in the first sync
		{[]holding{part, {}, {}}, agreement{1, []int{1}, []int{0, 2}, 0}},                             // rank 0 had a part only
		{[]holding{has(3, 5), has(2, 50), has(1, 500)}, agreement{5, []int{0}, []int{1, 2}, 0}},       // the round counts first
		{[]holding{{streams: 1}, {streams: 4}, {streams: 3}}, agreement{1, []int{0}, []int{1, 2}, 3}}, // that of a holder does not matter
		{[]holding{has(1, 1<<63), has(1, 1<<63+1)}, agreement{1<<63 + 1, []int{1}, []int{0}, 0}},      // unsigned
	} {
		if got, err := agree(c.all); err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("agree(%v) is %v, %v, want %v", c.all, got, err, c.want)
		}
	}
	if got, err := agree([]holding{part, part}); !errors.Is(err, errNothingWhole) {
		t.Errorf("of parts all agree on %v, %v", got, err)
	}
}

// A modelRank is a rank of a job in which a rank computes nothing: a commit is the list of the steps that have led to it.
type modelRank struct {
	id      commitID
	partial bool
	history string // of the last commit
}

// TestAgreementKeepsHistory runs jobs whose ranks commit, are ahead of each other by one commit, die, are cut off and come back, and in which
// ranks die while a world comes to the same state. In every world, the contents of a step depend on the round: ranks compute with another
// number of ranks. It checks that
//   - commits with the same round and number have the same history, on all ranks that have ever been: otherwise a rank that receives parts of
//     a commit from several others would get a mixture;
//   - all ranks of a world go on from the same history;
//   - what follows on a commit that all ranks of a world had goes on from it, as long as one of them is in the next world.
func TestAgreementKeepsHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		var (
			members = make([]*modelRank, size)
			away    []*modelRank // ranks that were cut off, and may come back
			seen    = map[commitID]string{}
			common  = map[*modelRank]string{} // of ranks of the last world: the history that all of its ranks had
		)
		for r := range members {
			members[r] = &modelRank{history: fmt.Sprintf("start of rank %d;", r)}
		}
		note := func(m *modelRank) {
			if h, ok := seen[m.id]; ok && h != m.history {
				t.Fatalf("commit %v is both %q and %q", m.id, h, m.history)
			}
			seen[m.id] = m.history
		}
		for round := range uint64(rapid.IntRange(1, 12).Draw(t, "rounds")) {
			round++
			all := make([]holding, len(members))
			for r, m := range members {
				all[r] = holding{m.id, m.partial, 1}
			}
			a, err := agree(all)
			if err != nil {
				if slices.ContainsFunc(members, func(m *modelRank) bool { return !m.partial }) {
					t.Fatalf("of %v nobody begins: %v", all, err)
				}
				return // the job ends
			}
			chosen := members[a.holders[0]].history
			for _, r := range a.holders {
				if members[r].partial {
					t.Fatalf("rank %d sends a part of a commit", r)
				}
				if members[r].history != chosen {
					t.Fatalf("holders have %q and %q", chosen, members[r].history)
				}
			}
			for _, m := range members {
				if !strings.HasPrefix(chosen, common[m]) {
					t.Fatalf("all ranks had %q, and go on from %q", common[m], chosen)
				}
			}
			whole := rapid.Bool().Draw(t, "whole")
			for r, m := range members { // without a death all come to the same state, otherwise some
				if whole || rapid.Bool().Draw(t, "arrived") {
					m.id, m.partial, m.history = commitID{round, a.number}, false, chosen
					note(m)
				} else if (m.id == commitID{}) && !slices.Contains(a.holders, r) {
					m.partial, m.history = true, "a part of it;"
				}
			}
			if whole {
				commits := rapid.IntRange(0, 4).Draw(t, "commits")
				for _, m := range members {
					for range commits + rapid.IntRange(0, 1).Draw(t, "ahead") {
						m.id.number++
						m.history += fmt.Sprintf("%d in round %d;", m.id.number, round)
						note(m)
					}
				}
				least := slices.MinFunc(members, func(a, b *modelRank) int { return len(a.history) - len(b.history) })
				for _, m := range members {
					common[m] = least.history
				}
			}
			var next []*modelRank
			for _, m := range members {
				switch rapid.SampledFrom([]string{"lives", "lives", "dies", "is replaced", "is cut off"}).Draw(t, "fate") {
				case "lives":
					next = append(next, m)
				case "is replaced":
					next = append(next, &modelRank{history: "start of another rank;"})
				case "is cut off":
					away = append(away, m)
					delete(common, m)
				}
			}
			for len(away) > 0 && (len(next) == 0 || rapid.Bool().Draw(t, "back")) {
				next, away = append(next, away[0]), away[1:]
			}
			if len(next) == 0 {
				next = append(next, &modelRank{history: "start of another rank;"})
			}
			members = rapid.Permutation(next).Draw(t, "ranks")
		}
	})
}

// TestSplit: the parts cover every byte of every buffer once, in order.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 100_000), 0, 8).Draw(t, "lengths")
		n := rapid.IntRange(1, maxSources).Draw(t, "parts")
		next := make([]int, len(lengths))
		parts := split(lengths, n)
		if len(parts) != n {
			t.Fatalf("%d parts", len(parts))
		}
		for _, part := range parts {
			for _, p := range part {
				if p.from != next[p.buffer] || p.to <= p.from {
					t.Fatalf("piece %v, want one from %d", p, next[p.buffer])
				}
				next[p.buffer] = p.to
			}
		}
		if !slices.Equal(next, lengths) {
			t.Errorf("the parts have %v bytes of %v", next, lengths)
		}
	})
}

func TestSources(t *testing.T) {
	ten := agreement{holders: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, streams: 8}
	two, one := ten, ten
	two.streams, one.streams = 2, 1
	for _, c := range []struct {
		a     agreement
		bytes int
		want  []int
	}{
		{agreement{holders: []int{3}, streams: 8}, 1 << 30, []int{3}},
		{ten, 1000, []int{0}},
		{ten, 2*minPart - 1, []int{0}},
		{ten, 2 * minPart, []int{0, 5}},
		{ten, 1 << 30, []int{0, 2, 5, 7}},
		{agreement{holders: []int{1, 4}, streams: 8}, 1 << 30, []int{1, 4}},
		{two, 1 << 30, []int{0, 5}},
		{one, 1 << 30, []int{0}},
	} {
		if got := c.a.sources(c.bytes); !slices.Equal(got, c.want) {
			t.Errorf("sources of %v for %d bytes are %v, want %v", c.a.holders, c.bytes, got, c.want)
		}
	}
}
