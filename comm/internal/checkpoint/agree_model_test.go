package checkpoint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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
