package node

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// TestFence: what a leader has decided has no effect if it is not the leader any more, if something else has been
// decided since, if the job is closed, or if a member is not as it was.
func TestFence(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	writes := map[string]func(*writer, *view) error{
		"tell": func(w *writer, v *view) error { return carryOut(t, w, &publishStatus{view: v, reason: "news"}) },
		"end":  func(w *writer, v *view) error { return carryOut(t, w, ended(v)) },
		"form": func(w *writer, v *view) error {
			return w.form(t.Context(), v, rendezvous.Formed{ID: 2, Members: v.members()}, "token")
		},
		"close": func(w *writer, v *view) error { return w.close(t.Context(), v, rendezvous.Outcome{}, time.Now()) },
	}
	all := []string{"tell", "end", "form", "close"}
	for what, c := range map[string]struct {
		stale func(*testing.T, *writer, *view)
		stops []string
	}{
		"nothing":         {func(*testing.T, *writer, *view) {}, nil},
		"another leader":  {func(_ *testing.T, _ *writer, v *view) { v.leaderRev-- }, all},
		"another etcd":    {func(_ *testing.T, _ *writer, v *view) { v.leaderLease-- }, all},
		"another round":   {func(_ *testing.T, _ *writer, v *view) { v.currentRev-- }, all},
		"a closed job":    {func(t *testing.T, w *writer, _ *view) { put(t, w, w.keys.state()) }, all},
		"another member":  {func(_ *testing.T, _ *writer, v *view) { n := v.nodes["n"]; n.rev--; v.nodes["n"] = n }, []string{"form"}},
		"a member's loss": {func(t *testing.T, w *writer, _ *view) { remove(t, w, w.keys.node("n")) }, []string{"form"}},
	} {
		for _, name := range all {
			w := &writer{store: client, keys: keysOf(DefaultPrefix, what+name), key: "n"}
			v := prepare(t, w)
			c.stale(t, w, v)
			before := contents(t, w)
			if err := writes[name](w, v); err != nil {
				t.Fatalf("%s, %s: %v", what, name, err)
			}
			stopped := contents(t, w) == before
			if want := slices.Contains(c.stops, name); stopped != want {
				t.Errorf("%s: %s is stopped: %t, want %t", what, name, stopped, want)
			}
		}
	}
}

// carryOut carries out a request at once.
func carryOut(t *testing.T, w *writer, r request) error {
	return r.do(t.Context(), &executor{writer: *w, pause: func(context.Context, time.Duration) {}})
}

// ended writes that v's round is over.
func ended(v *view) request {
	return &writeDecision{view: v, decision: rendezvous.Decision{Over: &rendezvous.Ending{Why: "why"}}}
}

// prepare writes a job with a leader, a node and a round.
func prepare(t *testing.T, w *writer) *view {
	t.Helper()
	lease, _, err := w.store.Keep(t.Context(), 0, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	self := nodeDoc{Node: rendezvous.Node{ID: "n", Host: "h", NodeRank: -1, Nproc: 1}, Port: 1, Joining: true, Try: 1}
	if _, err := w.enrol(t.Context(), enrolment{lease: lease, retention: time.Hour, mine: configDoc{Job: "j", Host: "h"}, self: self}, jobConfig{}, false); err != nil {
		t.Fatal(err)
	}
	if err := carryOut(t, w, &campaign{lease, leaderDoc{Key: w.key, Host: "h"}}); err != nil {
		t.Fatal(err)
	}
	look := func() *view {
		v, err := read(t.Context(), w, true, new(view))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := look()
	if err := w.form(t.Context(), v, rendezvous.Formed{ID: 1, Members: v.members()}, "token"); err != nil {
		t.Fatal(err)
	}
	return look()
}

func put(t *testing.T, w *writer, key string) {
	t.Helper()
	write(t, w, key, `{"version":2}`)
}

func remove(t *testing.T, w *writer, key string) {
	t.Helper()
	if err := w.when().delete(key).try(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, w *writer, key, text string) {
	t.Helper()
	if _, err := w.store.Commit(t.Context(), store.Txn{Puts: []store.Put{{Key: key, Value: text}}}); err != nil {
		t.Fatal(err)
	}
}

func kvs(t *testing.T, w *writer) []store.KV {
	t.Helper()
	answer, err := w.store.Read(t.Context(), below(w.keys.root))
	if err != nil {
		t.Fatal(err)
	}
	return answer.Found[0].KVs
}

func contents(t *testing.T, w *writer) string { return fmt.Sprint(kvs(t, w)) }

// TestFirstReportCounts, of those of one node, also if it has not heard that the first one is written.
func TestFirstReportCounts(t *testing.T) {
	t.Parallel()
	w := &writer{store: startServer(t).client(), keys: keysOf(DefaultPrefix, "job"), key: "n"}
	prepare(t, w)
	for _, code := range []int{3, 4} {
		r := recordReport{view: new(view), round: 1, doc: reportDoc{Failure: &rendezvous.Failure{Death: death.Death{ExitCode: code}}}}
		if err := carryOut(t, w, &r); err != nil {
			t.Fatal(err)
		}
	}
	v, err := read(t.Context(), w, true, new(view))
	if err != nil || len(v.reports) != 1 || v.reports[0].Failure.Code() != 3 {
		t.Errorf("the reports are %+v, %v", v.reports, err)
	}
}

// TestTheLastNodeTakesTheJobWithIt, and no other does.
func TestTheLastNodeTakesTheJobWithIt(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for _, order := range [][]string{{"a", "b", "c"}, {"b", "c", "a"}, {"c", "b", "a"}} {
		leases := make(map[string]store.Lease)
		w := writer{store: client, keys: keysOf(DefaultPrefix, fmt.Sprint(order))}
		for _, w.key = range order {
			lease, _, err := client.Keep(t.Context(), 0, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			leases[w.key] = lease
			self := nodeDoc{Node: rendezvous.Node{ID: w.key, Host: "h", Nproc: 1}, Port: 1}
			if _, err := w.register(t.Context(), lease, self, jobConfig{}, 0); err != nil {
				t.Fatal(err)
			}
		}
		put(t, &w, w.keys.config())
		for i, key := range order {
			w.key = key
			if err := w.leave(t.Context(), new(view), leases[key], 0, reportDoc{}); err != nil {
				t.Fatal(err)
			}
			want := []int{3, 2, 0}[i]
			if left := keysLeft(client.server, w.keys.root); len(left) != want {
				t.Errorf("%s: after %s has left there are %q, want %d keys", order, key, left, want)
			}
		}
	}
}
