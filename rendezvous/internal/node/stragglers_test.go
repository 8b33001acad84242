package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A straggler keeps every write, to carry it out again, as a member of etcd does that was stopped when it was asked first.
type straggler struct {
	store.Store
	writes []store.Txn
}

func (s *straggler) Commit(ctx context.Context, t store.Txn) (store.Answer, error) {
	s.writes = append(s.writes, t)
	return s.Store.Commit(ctx, t)
}

// values are what etcd has of the job, but for what people are told, and reports on rounds that are over.
func values(t *testing.T, w *writer) string {
	t.Helper()
	var all strings.Builder
	for _, kv := range kvs(t, w) {
		if key := kv.Key; key != w.keys.status() && !strings.HasPrefix(key, w.keys.reportsOf(1)) {
			fmt.Fprintf(&all, "%s %s %d\n", key, kv.Value, kv.Lease)
		}
	}
	return all.String()
}

// TestLateWrites: nothing that a node or a leader has written before changes anything when etcd carries it out again.
func TestLateWrites(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	late := &straggler{Store: client}
	w := &writer{store: late, keys: keysOf(DefaultPrefix, "late"), key: "n"}
	v := prepare(t, w)
	self := nodeDoc{Node: rendezvous.Node{ID: "n", Host: "h", NodeRank: -1, Nproc: 1}, Port: 1, Joining: true}
	rev := v.nodes[w.key].rev
	register := func(try int) error {
		var err error
		self.Try = try
		rev, err = w.register(t.Context(), v.leaderLease, self, v.config, rev)
		return err
	}
	look := func() error {
		now, err := read(t.Context(), w, true, new(view))
		v = now
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"the next Join", func() error { return register(2) }},
		{"another Join", func() error { return register(3) }},
		{"the round's end", func() error { return carryOut(t, w, ended(v)) }},
		{"a round", func() error {
			if err := look(); err != nil {
				return err
			}
			return w.form(t.Context(), v, rendezvous.Formed{ID: 2, Members: v.members()}, "token")
		}},
		{"a Join after it", func() error { return register(4) }},
		{"a lease that is lost", func() error {
			if err := w.revoke(t.Context(), v.leaderLease); err != nil {
				return err
			}
			lease, _, err := client.Keep(t.Context(), 0, time.Minute)
			if err != nil {
				return err
			}
			self.Try = 5
			e := enrolment{lease: lease, job: v.config.Job, mine: v.config.configDoc, self: self, retention: time.Minute}
			in, err := w.enrol(t.Context(), e, v.config, false)
			if err != nil {
				return err
			}
			rev = in.rev
			if err := carryOut(t, w, &campaign{lease, leaderDoc{Key: w.key, Host: "h"}}); err != nil {
				return err
			}
			return look()
		}},
		{"a Join under the new lease", func() error { return register(6) }},
		{"the end", func() error { return w.close(t.Context(), v, rendezvous.Outcome{}, time.Now()) }},
	} {
		before := values(t, w)
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		after := values(t, w)
		if after == before {
			t.Errorf("%s: nothing is written", step.what)
		}
		for _, write := range late.writes {
			_, _ = client.Commit(t.Context(), write) // its lease may be gone
			if now := values(t, w); now != after {
				t.Fatalf("%s: a request that is late changes\n%s\nto\n%s", step.what, after, now)
			}
		}
	}
}
