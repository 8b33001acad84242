package node

import (
	"testing"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

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
		for _, kv := range j.server.memory.Lookup(store.Below(keysOf(DefaultPrefix, j.config.RunID).root)) {
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
