package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
	"github.com/gorun/gorun/rendezvous/internal/testing/storetest"
)

// empty has etcd lose everything after a while, in no time.
func emptyAt(at time.Duration) func(*simWorld) {
	return func(w *simWorld) {
		w.after(at, func() {
			w.down(100*time.Millisecond, func() {
				w.record.lossy = true
				w.setStore(storetest.NewMemory(w.random))
			})
		})
	}
}

// TestMended: what the simulation has found. Each of these jobs went wrong, or asked etcd without a pause.
func TestMended(t *testing.T) {
	for _, s := range []*simStory{
		// The node did not know that it had begun the job, and took its settings away.
		{name: "the answer to a beginning is lost", nodes: 2, lost: "enrol"},
		// Nodes that were here kept each other from beginning a job.
		{name: "the settings are gone before a round has formed", nodes: 2, happens: func(w *simWorld) {
			w.after(100*time.Millisecond, func() {
				w.store.End(w.store.Get(keysOf(DefaultPrefix, "job").config()).Lease)
			})
		}},
		// Until the next renewal it campaigned again and again.
		{name: "nodes are gone, and the leader, while they enrol", nodes: 2, ends: failOnce, happens: func(w *simWorld) {
			w.after(2200*time.Millisecond, func() {
				for _, a := range w.agents {
					w.store.End(a.machine.conn.lease)
				}
			})
		}, slow: "enrol", slowAfter: 2 * time.Second},
		{name: "a read is slow when the job has ended", nodes: 2, change: func(c *Config) { c.Min = 1 }, happens: func(w *simWorld) {
			on(2*time.Second, "n1", func(a *simAgent) { a.cut = true })(w)
			on(30*time.Second, "n1", func(a *simAgent) { a.cut = false })(w)
		}, slow: "read", slowAfter: 29900 * time.Millisecond},
		// What was lost stayed lost: a report that the leader has read, one that it has not, and a node.
		{name: "etcd goes back behind a report, and counts on", nodes: 2, happens: func(w *simWorld) {
			w.goBack(5*time.Second, 11200*time.Millisecond, 5)
		}, ends: func(a *simAgent, r *simRound) {
			d := 10 * time.Second
			if a.name == "n0" {
				d = time.Minute
			}
			a.world.after(d, func() { a.succeed(r) })
		}},
		{name: "etcd goes back before a report, and counts on", nodes: 2, happens: func(w *simWorld) {
			noise := func() {
				for range 3 {
					key := keysOf(DefaultPrefix, "job").report(0, "nobody")
					_, _ = w.store.Commit(context.Background(), store.Txn{Puts: []store.Put{{Key: key, Value: "{}"}}}) // never fails
				}
			}
			w.after(6*time.Second, noise)
			w.goBack(5*time.Second, 9*time.Second+500*time.Microsecond, 0)
			on(9*time.Second, "n1", func(a *simAgent) { a.succeed(a.entered) })(w)
			w.after(9*time.Second+1100*time.Microsecond, noise)
		}, ends: func(a *simAgent, r *simRound) {
			if a.name == "n0" {
				a.world.after(10*time.Second, func() { a.succeed(r) })
			}
		}},
		{name: "etcd goes back behind a node, and counts on", nodes: 2, change: func(c *Config) { c.JoinTimeout = time.Minute }, happens: func(w *simWorld) {
			w.goBack(1003500*time.Microsecond, 1006500*time.Microsecond, 20)
		}},
	} {
		text, err := s.play()
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if err != nil || testing.Verbose() {
			t.Logf("%s:\n%s", s.name, text)
		}
	}
}

// TestEnrolNowhere: a node does not take itself to be in a job that is not there, or not any more.
func TestEnrolNowhere(t *testing.T) {
	for what, prepare := range map[string]func(w *writer, s *storetest.Memory) jobConfig{
		"only the node is there": func(w *writer, s *storetest.Memory) jobConfig {
			put(t, w, w.keys.node("other"))
			return jobConfig{}
		},
		"the job has been closed": func(w *writer, s *storetest.Memory) jobConfig {
			put(t, w, w.keys.config())
			put(t, w, w.keys.leader())
			known := jobConfig{rev: s.Get(w.keys.config()).Written}
			remove(t, w, w.keys.config())
			put(t, w, w.keys.state())
			return known
		},
	} {
		s := storetest.NewMemory(rand.New(rand.NewPCG(1, 1)))
		w := &writer{store: s, keys: keysOf(DefaultPrefix, "job"), key: "n"}
		known := prepare(w, s)
		lease, _, _ := s.Keep(t.Context(), 0, 10*time.Second)
		self := nodeDoc{Node: rendezvous.Node{ID: "n", Host: "h", NodeRank: -1, Nproc: 1}, Port: 1, Joining: true, Try: 1}
		if known.rev == 0 { // as if an earlier try had left it
			if _, err := w.register(t.Context(), lease, self, jobConfig{}, 0); err != nil {
				t.Fatal(err)
			}
			remove(t, w, w.keys.node("other"))
		}
		in, err := w.enrol(t.Context(), enrolment{lease: lease, retention: time.Minute, mine: configDoc{Job: "j"}, self: self}, known, known.rev > 0)
		if in.config.rev != 0 || in.begins || known.rev == 0 && !errors.Is(err, errForgotten) || known.rev > 0 && err != nil {
			t.Errorf("%s: enrolled %+v, %v", what, in, err)
		}
		if s.Leases() != 1 {
			t.Errorf("%s: there are %d leases, want 1", what, s.Leases())
		}
	}
}

// TestGoesBackBehindAnEnrolment: what a node has written is news of etcd, too. An etcd that then knows nothing of it has gone back, even if
// this node had read nothing since: nothing else may ever happen there.
func TestGoesBackBehindAnEnrolment(t *testing.T) {
	m := idle()
	m.conn.lease, m.conn.renewAt, m.conn.view = 7, time.Now().Add(time.Hour), &view{rev: 10}
	m.pending[enrolling], m.pending[reading] = true, true
	m.Step(time.Now(), answered{enrolling, &enrolNode{in: enrolled{rev: 20}}, nil})
	m.conn.readAt, m.conn.dirty, m.pending[reading] = time.Time{}, true, false
	var r *readJob
	for _, a := range m.Step(time.Now(), ticked{}) {
		if asked, ok := a.(asked); ok && asked.kind == reading {
			r = asked.request.(*readJob)
		}
	}
	if r == nil || r.seen != 20 {
		t.Fatalf("reads %+v", r)
	}
	s := storetest.NewMemory(rand.New(rand.NewPCG(1, 1)))
	x := &executor{writer: writer{store: s, keys: keysOf(DefaultPrefix, "job"), key: "k"}}
	for range 12 {
		put(t, &x.writer, x.keys.node("other"))
	}
	if err := r.do(t.Context(), x); err != nil || !r.lostHistory {
		t.Errorf("read %+v, %v, at revision %d", r, err, s.Rev())
	}
}

// TestAllAgentsVanish: when their leases are over the same command line is a new job, though etcd keeps the last one for an hour. Nothing of
// either stays.
func TestAllAgentsVanish(t *testing.T) {
	story := simStory{nodes: 2, change: func(c *Config) { c.JoinTimeout = time.Hour }, happens: func(w *simWorld) {
		for _, name := range []string{"n0", "n1"} {
			on(5*time.Second, name, func(a *simAgent) { a.exit(true) })(w)
		}
		w.after(15*time.Second, func() { w.add("n2", 0); w.add("n3", 1) })
	}}
	if text, err := story.play(); err != nil || strings.Count(text, "round 1 forms of 2 nodes") != 2 {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestNewsFromAnEtcdThatWentBack: etcd is as it was before. It has the whole job, but the nodes have seen later revisions. A watch that
// waits for the one after those would hear nothing for a long time. So they begin to watch anew, and hear at once what happens next.
func TestNewsFromAnEtcdThatWentBack(t *testing.T) {
	var failed, again time.Time
	story := simStory{nodes: 2, happens: func(w *simWorld) {
		var then *storetest.Memory
		w.after(5*time.Second, func() {
			then = w.store.Snapshot(0)
			k := keysOf(DefaultPrefix, "job")
			for range 200 { // which all nodes watch, and the leader
				puts := []store.Put{{Key: k.status(), Value: `{"version":2}`}, {Key: k.report(0, "nobody"), Value: `{"version":2}`}}
				_, _ = w.store.Commit(context.Background(), store.Txn{Puts: puts}) // never fails
			}
		})
		w.after(6*time.Second, func() {
			for _, a := range w.agents {
				a.machine.conn.dirty = true
				a.step(ticked{})
			}
		})
		w.after(7*time.Second, func() {
			w.down(2*time.Second, func() {
				w.record.lossy = true
				w.setStore(then)
			})
		})
	}, ends: func(a *simAgent, r *simRound) {
		w := a.world
		switch {
		case r.ID > 1:
			again = w.now
			w.after(time.Second, func() { a.succeed(r) })
		case a.name == "n1":
			w.after(12*time.Second, func() { failed = w.now; a.fail(r, false) })
		}
	}}
	if text, err := story.play(); err != nil || again.Sub(failed) > 3*time.Second {
		t.Errorf("a round fails %v after the beginning, and the next one begins %v after it: %v\n%s", failed.Sub(simBegin), again.Sub(failed), err, text)
	}
}

// goBack has etcd be as it was at a time, and so many revisions on.
func (w *simWorld) goBack(to, at time.Duration, on int64) {
	var then *storetest.Memory
	w.after(to, func() { then = w.store.Snapshot(on) })
	w.after(at, func() {
		w.record.lossy = true
		w.setStore(then)
		w.store.Extend()
		w.reconnect()
	})
}
