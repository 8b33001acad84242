package node

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// TestRoundDocuments: what is written of a round can be read again, however many nodes there are and whatever they have in
// common. None has to read much of it, and etcd takes all of it.
func TestRoundDocuments(t *testing.T) {
	for _, n := range []int{1, 2, 100, nodesLimit} {
		f := &rendezvous.Formed{
			ID: 2, Restarts: 1, Why: "b is lost",
			Losses: []rendezvous.Loss{{Host: "x", Times: 1}}, Late: map[string]int{"late": 3, "k": 1}, New: make(map[string]time.Duration),
		}
		var nodes []rendezvous.Node
		for i := range n {
			host := fmt.Sprintf("node-%d.a-cluster-with-a-long-name.example.com", i)
			nodes = append(nodes, rendezvous.Node{ID: host + "/1", Host: host, Addr: fmt.Sprint("a", i), NodeRank: i%2 - 1, Nproc: 1 + i%5, Role: []string{"", "default"}[i/50%2]})
			key := new(writer).newKey()
			if i%3 == 1 {
				f.New[key] = time.Minute
			}
			f.Members = append(f.Members, rendezvous.Candidate{Key: key, Try: 1 + i/3, Port: 4000, AgentPort: 7, Node: nodes[i]})
		}
		var docs []roundDoc
		all, longest := 0, 0
		for c, doc := range roundDocs(f, "secret") {
			text, err := encode("rounds/2/"+c, doc)
			if err != nil {
				t.Fatal(err)
			}
			all, longest = all+len(text), max(longest, len(text))
			doc, err := decode[roundDoc](store.KV{Value: text})
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, doc)
		}
		if len(docs) > 120 || all > 1400<<10 || longest > 30<<10 {
			t.Errorf("%d nodes: %d documents of %d bytes, and one of %d", n, len(docs), all, longest)
		}
		got, err := formed(docs)
		if err != nil {
			t.Fatal(err)
		}
		places := rendezvous.Assign(nodes)
		want := *f
		want.Members = slices.Clone(f.Members)
		for i, m := range f.Members {
			want.Members[i] = rendezvous.Candidate{Key: m.Key, Try: m.Try, Node: rendezvous.Node{ID: m.Node.ID, Host: m.Node.Host, Nproc: m.Node.Nproc}}
			doc := docs[slices.IndexFunc(docs, func(d roundDoc) bool { return d.Assignments[m.Key].Try > 0 })]
			if s := doc.Assignments[m.Key]; s.Rank != i || s.Try != m.Try || s.Place != places[i] || doc.Size != n || doc.Token != "secret" {
				t.Fatalf("%s has %+v in round %+v, want rank %d and %+v", m.Key, s, doc, i, places[i])
			}
			if doc.Rank0 != (rank0Doc{peerDoc{Key: f.Members[0].Key, Host: nodes[0].Host, Addr: "a0", AgentPort: 7}, 4000}) {
				t.Fatalf("the head is %+v", doc.Rank0)
			}
		}
		if !reflect.DeepEqual(got, &want) {
			t.Errorf("%d nodes: %+v, want %+v", n, got, want)
		}
		if _, err := formed(append(slices.Clone(docs), roundDoc{ID: f.ID, Size: n, Assignments: map[string]assignment{got.Members[n-1].Key: {}}})); err == nil {
			t.Errorf("%d nodes: there is a round although a node has two seats", n)
		}
		rest := slices.DeleteFunc(docs, func(d roundDoc) bool { return d.Assignments[got.Members[0].Key].Try > 0 })
		if _, err := formed(rest); err == nil {
			t.Errorf("%d nodes: there is a round although a document is missing", n)
		}
	}
}

// TestPeers: the members of a round call each other, if they are not too many, and the nodes that were left out because they are
// apart.
func TestPeers(t *testing.T) {
	for n, want := range map[int]int{2: 3, rendezvous.PeersLimit: rendezvous.PeersLimit + 1, rendezvous.PeersLimit + 1: 1} {
		f := &rendezvous.Formed{ID: 1, Apart: []rendezvous.Candidate{{Key: "out", AgentPort: 8, Node: rendezvous.Node{Host: "h", Addr: "10.0.0.9"}}}}
		for i := range n {
			f.Members = append(f.Members, rendezvous.Candidate{Key: fmt.Sprint("k", i), Port: 4000, AgentPort: 7, Node: rendezvous.Node{Host: "h", Nproc: 1}})
		}
		doc := roundDocs(f, "secret")["k"]
		if err := doc.check(); err != nil {
			t.Error(err)
		}
		if last := len(doc.Peers) - 1; len(doc.Peers) != want || doc.Peers[last] != (peerDoc{Key: "out", Host: "h", Addr: "10.0.0.9", AgentPort: 8}) {
			t.Errorf("of %d nodes each calls %d: %+v", n, len(doc.Peers), doc.Peers)
		}
		doc.Peers = make([]peerDoc, 2*rendezvous.PeersLimit+1)
		if doc.check() == nil {
			t.Errorf("each calls %d", len(doc.Peers))
		}
	}
}

func TestBadDocuments(t *testing.T) {
	long := strings.Repeat("x", docLimit)
	for _, c := range []struct{ text, want string }{
		{`nonsense`, "not a document of gorun's: invalid character 'o' in literal null (expecting 'u')"},
		{`{"version":1,"is":[]}`, "version 1, but this gorun uses version 2: all nodes need the same version of gorun"},
		{`{"version":2,"is":{"seats":7}}`, "not a document of gorun's: json: cannot unmarshal number into Go struct field roundDoc.is.seats of type map[string]node.assignment"},
		{`{"version":2}`, "round 0 of 0 nodes with port 0"},
		{`{"version":2,"is":` + round(-1, 1) + `}`, "round 1 of 1 nodes with k in {Rank:-1 Try:1 New:0s ID: Host:h Place:{FirstRank:0 WorldSize:1 FirstRoleRank:0 RoleWorldSize:1}}"},
		{`{"version":2,"is":` + round(0, 0) + `}`, "round 1 of 1 nodes with k in {Rank:0 Try:1 New:0s ID: Host:h Place:{FirstRank:0 WorldSize:0 FirstRoleRank:0 RoleWorldSize:1}}"},
		{`{"version":2,"is":{"token":"` + long + `"}}`, "a document of 1048607 bytes: want at most 1048576"},
	} {
		_, err := decode[roundDoc](store.KV{Key: "rounds/1", Value: c.text})
		var bad *DocumentError
		if !errors.As(err, &bad) || bad.Key != "rounds/1" || bad.Err.Error() != c.want {
			t.Errorf("%.60s: %v, want %s", c.text, err, c.want)
		}
	}
	self := nodeDoc{Node: rendezvous.Node{ID: "a", Host: "h", Nproc: 1}, Port: 1, Unreached: make([]unreachedDoc, reachLimit)}
	if err := self.check(); err != nil {
		t.Error(err)
	}
	if self.Unreached = make([]unreachedDoc, reachLimit+1); self.check() == nil {
		t.Errorf("a node cannot reach %d others", len(self.Unreached))
	}
	if _, err := encode("k", long); err == nil {
		t.Error("a document is written that nobody would read")
	}
	huge := &rendezvous.Failure{Text: strings.Repeat("x", failureLimit)}
	if err := checkFailure(huge); err == nil {
		t.Error("a failure of more than 64 KiB is reported")
	}
	if (&reportDoc{Failure: huge}).check() == nil {
		t.Error("a failure of more than 64 KiB is read")
	}
}

// TestTextsAreBounded: every key, name and address of a node in a document is one line, and not too long.
func TestTextsAreBounded(t *testing.T) {
	for what, doc := range map[string]func(text string) checker{
		"the key of an unreached node":     func(s string) checker { return aNode(unreachedDoc{Key: s}) },
		"the address of an unreached node": func(s string) checker { return aNode(unreachedDoc{Addr: s}) },
		"the key of a node rank":           func(s string) checker { return &rankDoc{Key: s} },
		"the ID of a node rank":            func(s string) checker { return &rankDoc{ID: s} },
		"the host of a node rank":          func(s string) checker { return &rankDoc{Host: s} },
		"the leader's key":                 func(s string) checker { return &leaderDoc{Key: s} },
		"the leader's host":                func(s string) checker { return &leaderDoc{Host: s} },
		"the leader's address":             func(s string) checker { return &leaderDoc{Agent: s} },
		"the key of rank 0's node":         func(s string) checker { return aRound(func(d *roundDoc) { d.Rank0.Key = s }) },
		"the host of a node that is gone": func(s string) checker {
			return aRound(func(d *roundDoc) { d.Gone = []rendezvous.GoneNode{{Host: s, Nproc: 1}} })
		},
		"why a node is gone": func(s string) checker {
			return &currentDoc{Round: 1, Over: &rendezvous.Ending{Gone: []rendezvous.GoneNode{{Why: s, Nproc: 1}}}}
		},
		"the host of rank 0's node":    func(s string) checker { return aRound(func(d *roundDoc) { d.Rank0.Host = s }) },
		"the address of rank 0's node": func(s string) checker { return aRound(func(d *roundDoc) { d.Rank0.Addr = s }) },
		"the key of a peer":            func(s string) checker { return aRound(func(d *roundDoc) { d.Peers = []peerDoc{{Key: s}} }) },
		"the host of a peer":           func(s string) checker { return aRound(func(d *roundDoc) { d.Peers = []peerDoc{{Host: s}} }) },
		"the address of a peer":        func(s string) checker { return aRound(func(d *roundDoc) { d.Peers = []peerDoc{{Addr: s}} }) },
		"the key of a member": func(s string) checker {
			return aRound(func(d *roundDoc) { d.Assignments = map[string]assignment{s: anAssignment} })
		},
		"the ID of a member's node":   func(s string) checker { return aMember(func(m *assignment) { m.ID = s }) },
		"the host of a member's node": func(s string) checker { return aMember(func(m *assignment) { m.Host = s }) },
	} {
		if err := doc(strings.Repeat("x", textLimit)).check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, bad := range []string{strings.Repeat("x", textLimit+1), "\x1b[1m", "a\nb", "\xff"} {
			if doc(bad).check() == nil {
				t.Errorf("%s is accepted: %.20q, of %d bytes", what, bad, len(bad))
			}
		}
	}
}

var anAssignment = assignment{Place: rendezvous.Place{WorldSize: 1, RoleWorldSize: 1}}

func aNode(u unreachedDoc) checker {
	return &nodeDoc{Node: rendezvous.Node{ID: "a", Host: "h", Nproc: 1}, Port: 1, Unreached: []unreachedDoc{u}}
}

func aRound(change func(*roundDoc)) checker {
	d := &roundDoc{ID: 1, Size: 1, Rank0: rank0Doc{Port: 1}}
	change(d)
	return d
}

func aMember(change func(*assignment)) checker {
	m := anAssignment
	change(&m)
	return aRound(func(d *roundDoc) { d.Assignments = map[string]assignment{"k": m} })
}

// round has one node, with that rank, and so many workers.
func round(rank, workers int) string {
	return fmt.Sprintf(`{"id":1,"size":1,"head":{"key":"k","host":"h","addr":"h","port":1,"door":1},"token":"t","seats":{"k":{"rank":%d,"try":1,`+
		`"id":"","host":"h","place":{"first":0,"world":%d,"role_first":0,"role_world":1}}}}`, rank, workers)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":2,"is":` + round(0, 1) + `}`))
	f.Add([]byte(`{"version":2,"is":{"failure":{"code":3},"outcome":{"code":1},"round":4,"over":{"why":"w"}}}`))
	f.Add([]byte(`{"version":2,"is":{"node":{"id":"a","host":"h","nproc":1},"port":1,"unreached":[{"key":"b","addr":"h:1"}]}}`))
	f.Add([]byte(`{"version":9}`))
	f.Add([]byte(`{"version":2,"is":` + strings.Replace(round(0, 1), `"size":1`, `"size":4000`, 1) + `}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		kv := store.KV{Key: "k", Value: string(text)}
		of := 64 * len(text)
		testkit.AllocatesAtMost(t, of+nodesLimit*512, func() {
			if doc, err := decode[roundDoc](kv); err == nil {
				if f, err := formed([]roundDoc{doc}); err == nil && doc.Assignments[f.Members[0].Key].Rank != 0 {
					t.Errorf("%q is a round of %+v", text, f.Members)
				}
			}
		})
		testkit.AllocatesAtMost(t, 8*of, func() {
			_, _ = decode[nodeDoc](kv)
			_, _ = decode[reportDoc](kv)
			_, _ = decode[stateDoc](kv)
			_, _ = decode[rankDoc](kv)
			_, _ = decode[leaderDoc](kv)
			_, _ = decode[statusDoc](kv)
		})
		if doc, err := decode[configDoc](kv); err == nil {
			if err := doc.Settings.Conflict(nil, doc.Host); err != nil && len(err.Error()) > 16*len(text)+1000 {
				t.Errorf("%q conflicts in %d bytes", text, len(err.Error()))
			}
		}
		if doc, err := decode[currentDoc](kv); err == nil && doc.Round < 1 {
			t.Errorf("%q is round %d", text, doc.Round)
		}
	})
}
