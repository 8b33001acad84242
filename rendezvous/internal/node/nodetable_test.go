package node

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// TestNodeTableIsComplete: what a leader knows from reading what has changed is what it would know from reading all.
func TestNodeTableIsComplete(t *testing.T) {
	t.Parallel()
	w := &writer{store: startServer(t).client(), keys: keysOf(DefaultPrefix, "job"), key: "n"}
	known := prepare(t, w)
	seed := testkit.Seed()
	random := rand.New(rand.NewPCG(seed, 0))
	look := func(before *view) *view {
		v, err := read(t.Context(), w, true, before)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	set := func(key string, doc any) {
		text, err := encode(key, doc)
		if err != nil {
			t.Fatal(err)
		}
		if random.IntN(4) == 0 {
			text = "nonsense"
		}
		write(t, w, key, text)
	}
	for range 200 {
		for range random.IntN(4) {
			key, n := fmt.Sprint("k", random.IntN(6)), random.IntN(100)
			switch random.IntN(8) {
			case 0, 1, 2:
				set(w.keys.node(key), nodeDoc{
					Node: rendezvous.Node{ID: key, Host: "h", Nproc: 1}, Port: 1, Try: n,
					Unreached: make([]unreachedDoc, random.IntN(3)),
				})
			case 3, 4:
				remove(t, w, w.keys.node(key))
			case 5, 6:
				set(w.keys.report(known.formed.ID+random.IntN(3)-1, key), reportDoc{Failure: &rendezvous.Failure{Death: death.Death{ExitCode: n}}})
			case 7:
				now := look(new(view))
				next := rendezvous.Formed{ID: now.formed.ID + 1, Members: now.members()}
				if err := w.form(t.Context(), now, next, "token"); err != nil {
					t.Fatal(err)
				}
			}
		}
		now, want := look(known), look(new(view))
		if now.show() != want.show() {
			t.Fatalf("seed %d: the view is\n%s, want\n%s", seed, now.show(), want.show())
		}
		known = now
	}
}

// TestUnreadableReport: a member's report that cannot be read is a failure of its first worker, and no other's.
func TestUnreadableReport(t *testing.T) {
	t.Parallel()
	w := &writer{store: startServer(t).client(), keys: keysOf(DefaultPrefix, "job"), key: "n"}
	v := prepare(t, w)
	member := func(key string, nproc int) rendezvous.Candidate {
		return rendezvous.Candidate{Key: key, Port: 1, Node: rendezvous.Node{ID: key + "/1", Host: key, Nproc: nproc}}
	}
	next := rendezvous.Formed{ID: 2, Members: []rendezvous.Candidate{v.members()[0], member("b", 2), member("c", 3), member("d", 4)}}
	if err := w.form(t.Context(), v, next, "token"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"version":2,"is":7}`, `{"version":2,"is":{"failure":{"exit_code":` + strings.Repeat("9", 500<<10) + `}}}`, `{"version":3}`, "", "\xff"} {
		write(t, w, w.keys.report(2, "c"), text)
		now, err := read(t.Context(), w, true, v)
		if err != nil {
			t.Fatal(err)
		}
		if len(now.reports) != 1 || now.reports[0].Key != "c" || now.reports[0].Failure == nil {
			t.Fatalf("%.40q: reports: %+v", text, now.reports)
		}
		f := now.reports[0].Failure
		if f.Code() != 1 || f.Rank != 3 || f.Host != "c" || f.Node != "c/1" || !strings.Contains(f.Text, "/reports/2/c: ") || len(f.Text) > 1100 {
			t.Errorf("%.40q: it failed: %+v", text, f)
		}
		v = now
	}
	write(t, w, w.keys.report(2, "c"), `{"version":2,"is":{}}`)
	if now, err := read(t.Context(), w, true, v); err != nil || len(now.reports) != 1 || now.reports[0].Failure != nil || len(now.bad) > 0 {
		t.Errorf("mended: %v, %+v, %v", err, now.reports, now.bad)
	}
}

// show is all that v says of the round and the nodes.
func (v *view) show() string {
	nodes, unreachable := v.candidates()
	text := fmt.Sprintf("%+v\n%+v\n%v\n%v", *v.formed, nodes, v.bad, unreachable)
	for _, key := range slices.Sorted(maps.Keys(v.nodes)) {
		text += fmt.Sprintf("\n%s at %d", key, v.nodes[key].rev)
	}
	for _, r := range v.reports {
		text += fmt.Sprintf("\n%s %+v", r.Key, *r.Failure)
	}
	return text
}

// members are all nodes.
func (v *view) members() []rendezvous.Candidate {
	all, _ := v.candidates()
	return all
}

// TestNewsOfAnotherHistory: a leader reads all nodes anew, and not only what has changed, if nodes are gone or if etcd has lost what the leader
// had read.
func TestNewsOfAnotherHistory(t *testing.T) {
	before := &view{rev: 10, whole: true, config: jobConfig{rev: 2, lease: 7}, nodeTable: nodeTable{nodes: map[string]knownNode{"a": {rev: 4, since: 3}}}}
	for name, c := range map[string]struct {
		now   view
		nodes int
		all   bool
	}{
		"later":                              {view{rev: 20, config: before.config}, 1, true},
		"a node is gone":                     {view{rev: 20, config: before.config}, 0, false},
		"earlier":                            {view{rev: 9, config: before.config}, 1, false},
		"another job":                        {view{rev: 20, config: jobConfig{rev: 3, lease: 7}}, 1, false},
		"the job is not there":               {view{rev: 20}, 1, false},
		"a round that is not among the news": {view{rev: 20, config: before.config, current: &currentDoc{Round: 1}}, 1, false},
		"another round of the same job":      {view{rev: 20, config: before.config, current: &currentDoc{Round: 1}, state: &stateDoc{}}, 1, true},
		"no round, since the job is over":    {view{rev: 20, config: before.config, state: &stateDoc{}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			found := []store.Found{{Count: c.nodes}, {}, {}}
			if all, err := c.now.applyChanges(keysOf(DefaultPrefix, "job"), before, found); all != c.all || err != nil && all {
				t.Errorf("all: %t, %v, want %t", all, err, c.all)
			}
		})
	}
}

// TestViewOfAnotherJob: a node that has enrolled in a job does not go by the round of another one, which has ended meanwhile.
func TestViewOfAnotherJob(t *testing.T) {
	v := &view{rev: 10, config: jobConfig{rev: 2, lease: 7}, leader: &leaderDoc{}, current: &currentDoc{Round: 2}}
	for name, c := range map[string]struct {
		in   enrolled
		same bool
	}{
		"the same":    {enrolled{rev: 20, config: v.config}, true},
		"another one": {enrolled{rev: 20, config: jobConfig{rev: 15, lease: 8}}, false},
		"its own":     {enrolled{rev: 20, config: jobConfig{rev: 20, lease: 8}, begins: true}, false},
	} {
		now := v.enrolled(c.in)
		if same := now.current != nil && now.leader != nil; same != c.same || now.rev != 20 || !now.config.same(c.in.config) {
			t.Errorf("%s: %+v", name, now)
		}
	}
}
