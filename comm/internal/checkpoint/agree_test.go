package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestAgree: ranks without parts.
func TestAgree(t *testing.T) {
	has := func(round, number uint64) report {
		return report{Begun: true, Copies: []copyReport{{ID: ID{round, number}, Agreed: round}}}
	}
	begunWith := func(round, number, agreed uint64) report {
		return report{Begun: true, Copies: []copyReport{{ID: ID{round, number}, Agreed: agreed}}}
	}
	newcomer, first, torn := report{}, report{Copies: []copyReport{{}}}, report{Begun: true}
	streams := func(r report, n int) report {
		r.Streams = n
		return r
	}
	for name, c := range map[string]struct {
		all       []report
		id        ID
		holders   []int
		receivers []int
		streams   int
	}{
		"alone":                    {[]report{first}, ID{9, 1}, []int{0}, nil, 0},
		"the first world":          {[]report{first, newcomer, newcomer}, ID{9, 1}, []int{0}, []int{1, 2}, 0},
		"the same":                 {[]report{has(1, 7), has(1, 7)}, ID{1, 7}, []int{0, 1}, nil, 0},
		"one was quicker":          {[]report{first, has(1, 7), has(1, 8)}, ID{1, 8}, []int{2}, []int{0, 1}, 0},
		"one was cut off":          {[]report{has(1, 9), has(2, 8), has(2, 8), newcomer}, ID{2, 8}, []int{1, 2}, []int{0, 3}, 0},
		"without gorun":            {[]report{has(0, 3), has(0, 3), newcomer, has(0, 2)}, ID{0, 3}, []int{0, 1}, []int{2, 3}, 0},
		"the round counts first":   {[]report{has(3, 5), has(2, 50), has(1, 500)}, ID{3, 5}, []int{0}, []int{1, 2}, 0},
		"a world has begun with":   {[]report{has(3, 50), begunWith(2, 8, 4), newcomer}, ID{2, 8}, []int{1}, []int{0, 2}, 0},
		"and gone on":              {[]report{begunWith(2, 8, 4), has(4, 9)}, ID{4, 9}, []int{1}, []int{0}, 0},
		"receivers' streams":       {[]report{streams(first, 1), streams(newcomer, 4), streams(newcomer, 3)}, ID{9, 1}, []int{0}, []int{1, 2}, 3},
		"unsigned":                 {[]report{has(1, 1<<63), has(1, 1<<63+1)}, ID{1, 1<<63 + 1}, []int{1}, []int{0}, 0},
		"a commit was interrupted": {[]report{torn, has(1, 7)}, ID{1, 7}, []int{1}, []int{0}, 0},
	} {
		a, err := agree(c.all, 9)
		if err != nil || a.id != c.id || !slices.Equal(a.holders, c.holders) || !slices.Equal(a.receivers, c.receivers) || a.streams != c.streams || len(a.eachCommit) > 0 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if a, err := agree([]report{first, torn}, 9); !errors.Is(err, errNothingWhole) {
		t.Errorf("of nothing: %+v, %v", a, err)
	}
}

// A modelRank is a rank of a job in which ranks compute nothing. A copy is the list of the steps that have led to it, for parts as well: a part
// that another one does not fit has other steps.
type modelRank struct {
	part   string
	node   string
	begun  bool
	copies map[string][]modelCopy
}

type modelCopy struct {
	copyReport
	history string
}

func (m *modelRank) report() report {
	r := report{Begun: m.begun, Node: m.node, Streams: 1}
	if m.part != "" {
		r.Parts = []string{m.part}
	}
	for _, copies := range m.copies {
		for _, c := range copies {
			r.Copies = append(r.Copies, c.copyReport)
		}
	}
	return r
}

func (m *modelRank) put(name string, id ID, agreed uint64, history string) {
	list := slices.DeleteFunc(m.copies[name], func(c modelCopy) bool { return c.ID == id || c.ID == ID{} })
	m.copies[name] = append([]modelCopy{{copyReport{name, id, agreed}, history}}, list[:min(len(list), 1)]...)
}

func (m *modelRank) history(name string, id ID) (string, bool) {
	for _, c := range m.copies[name] {
		if c.ID == id {
			return c.history, true
		}
	}
	return "", false
}

// TestAgreementKeepsHistory runs jobs whose ranks commit, die, are cut off and come back, at any time: while parts are on their way to partners, and
// while a world comes to the same commit. In every world the contents of a step depend on the round: ranks compute with another number of ranks. It
// checks that
//   - copies of the same commit have the same history, whose ever they are: nobody goes on with parts of several commits;
//   - ranks go on from a commit that was whole, as long as of each part, the rank or its partner lives, and otherwise say so.
func TestAgreementKeepsHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { modelJob(t, rapid.Bool().Draw(t, "parts")) })
}

func modelJob(t *rapid.T, parts bool) {
	size := rapid.IntRange(1, 5).Draw(t, "size")
	start := func(rank int) *modelRank {
		m := &modelRank{node: fmt.Sprint(rank / 2), copies: make(map[string][]modelCopy)}
		if parts {
			m.part = fmt.Sprint("part ", rank)
		}
		return m
	}
	members, away := make([]*modelRank, size), make([]*modelRank, size) // by rank
	for r := range members {
		members[r] = start(r)
	}
	seen := make(map[ID]string)
	note := func(id ID, history string) {
		if h, ok := seen[id]; ok && h != history {
			t.Fatalf("commit %v is both %q and %q", id, h, history)
		}
		seen[id] = history
	}
	whole, keepers := "", map[string][]*modelRank{} // what all had of the last commit that was whole, and who
	for round := range uint64(rapid.IntRange(1, 12).Draw(t, "rounds")) {
		round++
		all := make([]report, size)
		for r, m := range members {
			if !m.begun {
				for name, list := range m.copies { // it takes its variables again
					m.copies[name] = slices.DeleteFunc(list, func(c modelCopy) bool { return c.ID == ID{} })
				}
				initial := func(name string) {
					m.copies[name] = append(m.copies[name], modelCopy{copyReport{Name: name}, "start;"})
				}
				if r == 0 {
					initial(Shared)
				}
				if parts {
					initial(m.part)
				}
			}
			all[r] = m.report()
		}
		a, err := agree(all, round)
		survive := true
		for _, ranks := range keepers {
			survive = survive && slices.ContainsFunc(ranks, func(m *modelRank) bool { return slices.Contains(members, m) })
		}
		if err != nil {
			if survive && len(keepers) > 0 {
				t.Fatalf("somebody has each part of %q, and: %v", whole, err)
			}
			return // the job ends
		}
		from := a.id
		if a.initial {
			from = ID{}
		}
		chosen, _ := members[a.holders[0]].history(Shared, from)
		for _, r := range a.holders {
			if h, ok := members[r].history(Shared, from); !ok || h != chosen {
				t.Fatalf("rank %d has %q, and another one %q", r, h, chosen)
			}
		}
		if survive && !strings.HasPrefix(chosen, whole) {
			t.Fatalf("all had %q, and go on from %q", whole, chosen)
		}
		arrives := func() bool { return true }
		done := rapid.IntRange(0, 3).Draw(t, "death") > 0
		if !done {
			arrives = func() bool { return rapid.Bool().Draw(t, "arrives") }
		}
		for _, r := range append(a.receivers, a.holders...) {
			if h, ok := members[r].history(Shared, from); ok && arrives() {
				members[r].put(Shared, a.id, 0, h)
			} else if arrives() {
				members[r].put(Shared, a.id, 0, chosen)
			}
		}
		if a.initial && parts {
			for _, m := range members {
				if arrives() {
					m.put(m.part, a.id, 0, chosen)
				}
			}
		}
		for _, m := range slices.Concat(a.toOwners, a.toPartners) {
			if h, ok := members[m.from].history(m.name, a.id); ok && arrives() {
				members[m.to].put(m.name, a.id, 0, h)
			}
		}
		if done {
			history := chosen
			begin := func(id ID, only bool) { // all have it
				keepers = make(map[string][]*modelRank)
				for r, m := range members {
					for name, list := range m.copies {
						h, ok := m.history(name, id)
						if ok {
							note(id, h)
							keepers[name] = append(keepers[name], m)
						}
						if only {
							m.copies[name] = slices.DeleteFunc(list, func(c modelCopy) bool { return c.ID != id })
						}
					}
					for _, name := range append([]string{Shared}, all[r].Parts...) {
						if _, ok := m.history(name, id); !ok {
							t.Fatalf("rank %d has nothing of %q in %v", r, name, id)
						}
					}
				}
				whole = history
			}
			for _, m := range members {
				m.begun = true
				for _, list := range m.copies {
					for i := range list {
						if list[i].ID == a.id {
							list[i].Agreed = round
						}
					}
				}
			}
			begin(a.id, true)
			id := ID{round, a.id.Number}
			for n := range rapid.IntRange(0, 4).Draw(t, "commits") {
				id.Number++
				next := fmt.Sprintf("%s%d in round %d;", history, id.Number, round)
				last := n > 0 && rapid.Bool().Draw(t, "not whole")
				took := make([]bool, size)
				for r, m := range members {
					if took[r] = !last || rapid.Bool().Draw(t, "takes"); !took[r] {
						continue
					}
					m.put(Shared, id, round, next)
					if parts {
						m.put(m.part, id, round, next)
					}
				}
				for _, m := range a.eachCommit {
					if took[m.from] && took[m.to] && (!last || rapid.Bool().Draw(t, "sent")) {
						members[m.to].put(m.name, id, round, next)
					}
				}
				if last {
					break
				}
				history = next
				begin(id, false)
			}
		}
		for r, m := range members {
			switch rapid.SampledFrom([]string{"lives", "lives", "lives", "is replaced", "is cut off", "comes back"}).Draw(t, "fate") {
			case "is replaced":
				members[r] = start(r)
			case "is cut off":
				members[r], away[r] = start(r), m
				for name, ranks := range keepers { // the others may go on without it
					keepers[name] = slices.DeleteFunc(ranks, func(other *modelRank) bool { return other == m })
				}
			case "comes back":
				if away[r] != nil {
					members[r], away[r] = away[r], nil
				}
			}
		}
	}
}

func TestPartners(t *testing.T) {
	for nodes, want := range map[string][]int{"a": {0}, "aa": {1, 0}, "aab": {2, 0, 1}, "aabb": {2, 3, 0, 1}, "abab": {1, 0, 3, 2}, "aaab": {3, 0, 1, 2}, "abc": {1, 2, 0}} {
		if got := partnersOf(strings.Split(nodes, "")); !slices.Equal(got, want) {
			t.Errorf("partners in %s are %v, want %v", nodes, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 12).Draw(t, "nodes")
		count := make(map[string]int)
		for _, node := range nodes {
			count[node]++
		}
		seen, together := make([]bool, len(nodes)), make(map[string]int)
		for rank, partner := range partnersOf(nodes) {
			if seen[partner] || partner == rank && len(nodes) > 1 {
				t.Fatalf("rank %d is the partner of rank %d and of another one", partner, rank)
			}
			if seen[partner] = true; nodes[partner] == nodes[rank] {
				together[nodes[rank]]++
			}
		}
		for node, n := range together { // no more than have to be
			if least := max(2*count[node]-len(nodes), 0); n != least {
				t.Errorf("in %v, %d partners are on node %s: %d have to be", nodes, n, node, least)
			}
		}
	})
}

// TestBounds: the ranges that several ranks send make up the whole.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, n := rapid.IntRange(0, 1<<30).Draw(t, "total"), rapid.IntRange(1, maxSources).Draw(t, "ranges")
		if bound(total, 0, n) != 0 || bound(total, n, n) != total {
			t.Fatalf("%d bytes begin at %d and end at %d", total, bound(total, 0, n), bound(total, n, n))
		}
		for i := range n {
			if bound(total, i, n) > bound(total, i+1, n) {
				t.Fatalf("range %d of %d begins after its end", i, n)
			}
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
		{ten, 2*minShare - 1, []int{0}},
		{ten, 2 * minShare, []int{0, 5}},
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
