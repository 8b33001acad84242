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
	r := report{Begun: m.begun, Node: m.node, Sources: 1}
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
	rapid.Check(t, func(t *rapid.T) {
		j := &modelJob{T: t, parts: rapid.Bool().Draw(t, "parts"), seen: make(map[ID]string)}
		j.members = make([]*modelRank, rapid.IntRange(1, 5).Draw(t, "size"))
		j.away = make([]*modelRank, len(j.members))
		for r := range j.members {
			j.members[r] = j.start(r)
		}
		for round := range uint64(rapid.IntRange(1, 12).Draw(t, "rounds")) {
			if !j.world(round + 1) {
				return
			}
			j.change()
		}
	})
}

type modelJob struct {
	*rapid.T
	parts         bool
	members, away []*modelRank            // by rank
	seen          map[ID]string           // the history of each commit
	whole         string                  // the history of the last commit that all had
	keepers       map[string][]*modelRank // the ranks that have a copy of that, by name
}

func (j *modelJob) start(rank int) *modelRank {
	m := &modelRank{node: fmt.Sprint(rank / 2), copies: make(map[string][]modelCopy)}
	if j.parts {
		m.part = fmt.Sprint("part ", rank)
	}
	return m
}

// world is one world of the job. It returns false if the job ends.
func (j *modelJob) world(round uint64) bool {
	a, err := agree(j.reports(), round)
	survives := true
	for _, ranks := range j.keepers {
		survives = survives && slices.ContainsFunc(ranks, func(m *modelRank) bool { return slices.Contains(j.members, m) })
	}
	if err != nil {
		if survives && len(j.keepers) > 0 {
			j.Fatalf("somebody has each part of %q, and: %v", j.whole, err)
		}
		return false
	}
	from := a.id
	if a.initial {
		from = ID{}
	}
	chosen, _ := j.members[a.holders[0]].history(Shared, from)
	for _, r := range a.holders {
		if h, ok := j.members[r].history(Shared, from); !ok || h != chosen {
			j.Fatalf("rank %d has %q, and another one %q", r, h, chosen)
		}
	}
	if survives && !strings.HasPrefix(chosen, j.whole) {
		j.Fatalf("all had %q, and go on from %q", j.whole, chosen)
	}
	dies := rapid.IntRange(0, 3).Draw(j.T, "death") == 0
	j.sync(a, chosen, func() bool { return !dies || rapid.Bool().Draw(j.T, "arrives") })
	if !dies {
		j.begin(a, round, chosen)
		j.commits(a, round, chosen)
	}
	return true
}

// reports returns what ranks say when a world begins. Before a rank's first world has begun, it takes its variables.
func (j *modelJob) reports() []report {
	all := make([]report, len(j.members))
	for r, m := range j.members {
		if !m.begun {
			for name, list := range m.copies { // of the world before, which has not begun
				m.copies[name] = slices.DeleteFunc(list, func(c modelCopy) bool { return c.ID == ID{} })
			}
			if r == 0 {
				m.takeInitial(Shared)
			}
			if j.parts {
				m.takeInitial(m.part)
			}
		}
		all[r] = m.report()
	}
	return all
}

func (m *modelRank) takeInitial(name string) {
	m.copies[name] = append(m.copies[name], modelCopy{copyReport{Name: name}, "start;"})
}

// sync brings copies to ranks, as far as they arrive. chosen is the history of the commit.
func (j *modelJob) sync(a agreement, chosen string, arrives func() bool) {
	if a.initial && arrives() {
		j.members[a.holders[0]].put(Shared, a.id, 0, chosen)
	}
	for _, m := range j.members {
		if a.initial && j.parts && arrives() {
			m.put(m.part, a.id, 0, chosen)
		}
	}
	for _, r := range a.receivers {
		if arrives() {
			j.members[r].put(Shared, a.id, 0, chosen)
		}
	}
	for _, m := range slices.Concat(a.toOwners, a.toPartners) {
		if h, ok := j.members[m.from].history(m.name, a.id); ok && arrives() {
			j.members[m.to].put(m.name, a.id, 0, h)
		}
	}
}

// begin begins the world: from now on all have this commit, and no other one.
func (j *modelJob) begin(a agreement, round uint64, history string) {
	for _, m := range j.members {
		m.begun = true
		for name, list := range m.copies {
			m.copies[name] = slices.DeleteFunc(list, func(c modelCopy) bool { return c.ID != a.id })
			for i := range m.copies[name] {
				m.copies[name][i].Agreed = round
			}
		}
	}
	j.allHave(a.id, history)
}

// allHave checks that all have a commit, and of which history.
func (j *modelJob) allHave(id ID, history string) {
	j.keepers = make(map[string][]*modelRank)
	for r, m := range j.members {
		for name := range m.copies {
			h, ok := m.history(name, id)
			if !ok {
				continue
			}
			if seen, ok := j.seen[id]; ok && h != seen {
				j.Fatalf("commit %v is both %q and %q", id, h, seen)
			}
			j.seen[id] = h
			j.keepers[name] = append(j.keepers[name], m)
		}
		for _, name := range append([]string{Shared}, m.report().Parts...) {
			if _, ok := m.history(name, id); !ok {
				j.Fatalf("rank %d has nothing of %q in %v", r, name, id)
			}
		}
	}
	j.whole = history
}

// commits makes some commits. The last one may be incomplete: some ranks have not taken it, and some partners have not received its parts.
func (j *modelJob) commits(a agreement, round uint64, history string) {
	id := ID{round, a.id.Number}
	for n := range rapid.IntRange(0, 4).Draw(j.T, "commits") {
		id.Number++
		history = fmt.Sprintf("%s%d in round %d;", history, id.Number, round)
		last := n > 0 && rapid.Bool().Draw(j.T, "not whole")
		took := make([]bool, len(j.members))
		for r, m := range j.members {
			if took[r] = !last || rapid.Bool().Draw(j.T, "takes"); !took[r] {
				continue
			}
			m.put(Shared, id, round, history)
			if j.parts {
				m.put(m.part, id, round, history)
			}
		}
		for _, m := range a.eachCommit {
			if took[m.from] && took[m.to] && (!last || rapid.Bool().Draw(j.T, "sent")) {
				j.members[m.to].put(m.name, id, round, history)
			}
		}
		if last {
			return
		}
		j.allHave(id, history)
	}
}

// change replaces ranks, cuts them off, and brings those back that were.
func (j *modelJob) change() {
	for r, m := range j.members {
		switch rapid.SampledFrom([]string{"lives", "lives", "lives", "is replaced", "is cut off", "comes back"}).Draw(j.T, "rank") {
		case "is replaced":
			j.members[r] = j.start(r)
		case "is cut off":
			j.members[r], j.away[r] = j.start(r), m
			for name, ranks := range j.keepers { // the others may go on without it
				j.keepers[name] = slices.DeleteFunc(ranks, func(other *modelRank) bool { return other == m })
			}
		case "comes back":
			if j.away[r] != nil {
				j.members[r], j.away[r] = j.away[r], nil
			}
		}
	}
}
