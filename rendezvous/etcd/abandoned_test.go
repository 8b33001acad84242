package etcd

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// TestAllAgentsVanish: when their leases are over the same command line is a new job, and nothing of the old one stays in etcd.
func TestAllAgentsVanish(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	j.config.JoinTimeout = 10 * time.Second // for which etcd keeps what it knows
	agents := j.agents(2)
	rounds := together(t, agents)
	agents[0].report(rounds[0], failure(agents[0], 0, 3))
	wantNewRound(t, rounds)
	if r := together(t, agents)[0]; r.ID != 2 || r.Restarts != 1 {
		t.Errorf("the second round is %s", show(r))
	}
	for _, a := range agents {
		a.vanish()
	}
	agents = j.agents(2)
	for i, a := range agents {
		a.node.NodeRank = i
	}
	awaitKeys(t, j, "nodes/", 0)
	rounds = together(t, agents)
	if r := rounds[0]; r.ID != 1 || r.Restarts != 0 || r.Why != "" {
		t.Errorf("the new job begins with %s", show(r))
	}
	agents[0].report(rounds[0], failure(agents[0], 0, 3))
	wantNewRound(t, rounds)
	for _, a := range agents {
		a.vanish()
	}
	awaitKeys(t, j, "", 0)
}

// TestAllIsLeased: whatever is written of a job goes with its agents.
func TestAllIsLeased(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 3, 3)
	j.config.MaxRestarts = 2
	agents := j.agents(3)
	for i, a := range agents {
		a.node.NodeRank = i
	}
	waiting := later(agents[0])
	awaitKeys(t, j, "job/status", 1)
	rounds := append(together(t, agents[1:]), waiting(t))
	agents[0].report(rounds[2], nil)
	awaitKeys(t, j, "reports/", 1)
	leased := func() {
		all, err := j.client.Get(t.Context(), keysOf(DefaultPrefix, j.config.RunID).root, clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range all.Kvs {
			if kv.Lease == 0 {
				t.Errorf("%s has no lease", kv.Key)
			}
		}
	}
	leased()
	agents[1].report(rounds[0], failure(agents[1], 1, 3))
	wantNewRound(t, []*rendezvous.Round{rounds[0], rounds[1]})
	leased()
}
