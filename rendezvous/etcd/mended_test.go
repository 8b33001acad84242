package etcd

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// empty has etcd lose everything after a while, in no time.
func emptyAt(at time.Duration) func(*simWorld) {
	return func(w *simWorld) {
		w.after(at, func() {
			w.down(100*time.Millisecond, func() {
				w.record.lossy = true
				w.setStore(newSimStore(w.random))
			})
		})
	}
}

// TestMended: what the simulation has found. Each of these jobs went wrong, or asked etcd without a pause.
func TestMended(t *testing.T) {
	t.Parallel()
	for _, s := range []*simStory{
		// The node did not know that it had begun the job, and took its settings away.
		{name: "the answer to a beginning is lost", nodes: 2, lost: "enrol"},
		{name: "the answer to a restoration is lost", nodes: 2, lost: "restore", happens: emptyAt(3 * time.Second)},
		// Nodes that were here kept each other from beginning a job.
		{name: "the settings are gone before a round has formed", nodes: 2, happens: func(w *simWorld) {
			w.after(100*time.Millisecond, func() {
				_ = w.store.revoke(clientv3.LeaseID(w.store.values[keysOf(DefaultPrefix, "job").config()].Lease)) // it is there
			})
		}},
		// Until the next renewal it campaigned again and again.
		{name: "the lease is lost, and the leader", nodes: 2, happens: func(w *simWorld) {
			w.after(3100*time.Millisecond, func() {
				for _, a := range w.agents {
					_ = w.store.revoke(a.machine.conn.lease) // it is there
				}
			})
		}},
		{name: "a read is slow after a restoration", nodes: 2, happens: emptyAt(3 * time.Second), slow: "read", slowAfter: 3100 * time.Millisecond},
		{name: "a read is slow when the job has ended", nodes: 2, change: func(c *Config) { c.Min = 1 }, happens: func(w *simWorld) {
			on(2*time.Second, "n1", func(a *simAgent) { a.cut = true })(w)
			on(13*time.Second, "n1", func(a *simAgent) { a.cut = false })(w)
		}, slow: "read", slowAfter: 12900 * time.Millisecond},
		// Reports, and a node, were missing for ever.
		{name: "etcd goes back behind reports, and counts on", nodes: 2, happens: func(w *simWorld) {
			var then *simStore
			w.after(5*time.Second, func() { then = w.store.snapshot() })
			w.after(11200*time.Millisecond, func() { w.goBack(then, 5) })
		}, ends: func(a *simAgent, r *simRound) {
			d := 10 * time.Second
			if a.name == "n1" {
				d = 12 * time.Second
			}
			a.world.after(d, func() { a.succeed(r) })
		}},
		{name: "etcd goes back behind a Join, and counts on", nodes: 2, ends: failOnce, happens: func(w *simWorld) {
			var then *simStore
			w.after(2100*time.Millisecond, func() { then = w.store.snapshot() })
			w.after(2170*time.Millisecond, func() { w.goBack(then, 20) })
		}},
		// The budget began anew.
		{name: "none of the round's members puts it back", nodes: 2, change: func(c *Config) { c.Min, c.Max, c.MaxRestarts = 1, 1, 2 }, ends: func(a *simAgent, r *simRound) {
			d := 10 * time.Second
			if a.name == "n0" {
				d = time.Second
			}
			a.world.after(d, func() { a.report(r, a.failure(r, false)) })
		}, happens: func(w *simWorld) {
			on(4*time.Second, "n0", func(a *simAgent) { w.vanished = true; a.exit(true) })(w)
			emptyAt(4 * time.Second)(w)
		}},
	} {
		if text, err := s.play(); err != nil {
			t.Errorf("%s: %v", s.name, err)
			t.Log(text)
		}
	}
}

// goBack has etcd be as it was, and as many revisions on.
func (w *simWorld) goBack(then *simStore, on int) {
	w.record.lossy = true
	for range on {
		then.rev++
	}
	w.setStore(then)
	w.store.extend(w.now)
	w.reconnect()
}
