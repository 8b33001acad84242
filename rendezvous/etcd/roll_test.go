package etcd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gorun/gorun/rendezvous"
)

// TestRollIsComplete: what a leader knows from reading what has changed is what it would know from reading all.
func TestRollIsComplete(t *testing.T) {
	t.Parallel()
	w := &writer{client: startServer(t).client(), keys: keysOf(DefaultPrefix, "job"), key: "n"}
	known := prepare(t, w)
	seed := rand.Uint64()
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
		if _, err := w.client.Put(t.Context(), key, text); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		for range random.IntN(4) {
			key, n := fmt.Sprint("k", random.IntN(6)), random.IntN(100)
			switch random.IntN(8) {
			case 0, 1, 2:
				set(w.keys.node(key), nodeDoc{
					Node: node{ID: key, Host: "h", Nproc: 1}, Port: 1, Try: n,
					Unreached: make([]unreachedDoc, random.IntN(3)),
				})
			case 3, 4:
				remove(t, w, w.keys.node(key))
			case 5, 6:
				set(w.keys.report(known.last.ID+random.IntN(3)-1, key), reportDoc{Failure: &rendezvous.Failure{Code: n}})
			case 7:
				now := look(new(view))
				next := rendezvous.Formed{ID: now.last.ID + 1, Members: now.nodes}
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

// show is all that v says of the round and the nodes.
func (v *view) show() string {
	text := fmt.Sprintf("%+v\n%+v\n%v\n%v\n%v", *v.last, v.nodes, v.nodeRev, v.bad, v.unreachable())
	for _, r := range v.reports {
		text += fmt.Sprintf("\n%s %+v", r.Key, *r.Failure)
	}
	return text
}
