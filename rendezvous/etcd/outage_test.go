package etcd

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// TestOutage: etcd is away for longer than a lease lasts, and comes back with its data and without its history.
func TestOutage(t *testing.T) {
	server := startServer(t)
	j := newJob(t, server.client(), 3, 3)
	agents := j.agents(3)
	rounds := together(t, agents)

	server.stop()
	time.Sleep(3 * j.config.TTL)
	for _, r := range rounds {
		if r.Err() != nil {
			t.Errorf("while etcd is away, round %d is over: %v", r.ID, r.Err())
		}
	}
	server.start()
	server.compact(t)

	// In round 1 as if nothing had been.
	for i, a := range agents {
		a.report(rounds[i], failure(a, rounds[i].Self, 3))
	}
	wantNewRound(t, rounds)
	rounds = together(t, agents)
	if r := rounds[0]; r.ID != 2 || r.Restarts != 1 {
		t.Errorf("the second round is %s", show(r))
	}
	for i, a := range agents {
		a.report(rounds[i], nil)
	}
	for _, r := range rounds {
		if o := closed(t, over(t, r)); o != (rendezvous.Outcome{}) {
			t.Errorf("the job ended with %+v", o)
		}
	}
}

// compact forgets all history.
func (s *server) compact(t *testing.T) {
	t.Helper()
	c := s.client()
	answer, err := c.Put(t.Context(), "/other", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), answer.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}

// TestReportDuringAnOutage is recorded after it.
func TestReportDuringAnOutage(t *testing.T) {
	server := startServer(t)
	agents := newJob(t, server.client(), 2, 2).agents(2)
	rounds := together(t, agents)
	server.stop()
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		for i, a := range agents {
			a.report(rounds[i], nil)
		}
	}()
	time.Sleep(time.Second / 2)
	select {
	case <-recorded:
		t.Error("a report is recorded without etcd")
	default:
	}
	server.start()
	<-recorded
	if o := closed(t, over(t, rounds[0])); o != (rendezvous.Outcome{}) {
		t.Errorf("the job ended with %+v", o)
	}
}

// TestAllLeasesAreLost, of agents that are alive: they come back as the nodes that they were, in the same round.
func TestAllLeasesAreLost(t *testing.T) {
	j := newJob(t, startServer(t).client(), 3, 3)
	agents := j.agents(3)
	rounds := together(t, agents)
	leases, err := j.client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if _, err := j.client.Revoke(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	awaitKeys(t, j, "nodes/", 3)
	for i, a := range agents {
		a.report(rounds[i], nil)
	}
	for _, r := range rounds {
		if o := closed(t, over(t, r)); r.ID != 1 || o != (rendezvous.Outcome{}) {
			t.Errorf("in round %d the job ended with %+v, want success in round 1", r.ID, o)
		}
	}
}

// TestOneLeaseIsLost: the others go on without that node, and it comes back as a newcomer.
func TestOneLeaseIsLost(t *testing.T) {
	j := newJob(t, startServer(t).client(), 2, 2)
	agents := j.agents(2)
	first := together(t, agents)
	leader := j.leader(t)
	for i, a := range agents {
		if a.loop.etcd.key == leader {
			continue
		}
		key := keysOf(DefaultPrefix, j.config.RunID).node(a.loop.etcd.key)
		answer, err := j.client.Get(t.Context(), key)
		if err != nil || len(answer.Kvs) != 1 {
			t.Fatalf("node %d: %v, %v", i, answer, err)
		}
		if _, err := j.client.Revoke(t.Context(), clientv3.LeaseID(answer.Kvs[0].Lease)); err != nil {
			t.Fatal(err)
		}
	}
	wantNewRound(t, first)
	if r := together(t, agents)[0]; r.ID != 2 || r.Restarts != 0 {
		t.Errorf("the second round is %s", show(r))
	}
}

// TestLostData: a round that etcd knows nothing of cannot be followed by another.
func TestLostData(t *testing.T) {
	j := newJob(t, startServer(t).client(), 2, 2)
	rounds := together(t, j.agents(2))
	if _, err := j.client.Delete(t.Context(), keysOf(DefaultPrefix, j.config.RunID).root, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	want := rendezvous.Outcome{Code: 75, Reason: "etcd has no record of round 1: its data are lost, or the job ended long ago"}
	for _, r := range rounds {
		if o := closed(t, over(t, r)); o != want {
			t.Errorf("the job ended with %+v, want %+v", o, want)
		}
	}
}
