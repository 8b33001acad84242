package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A gag keeps etcd from being told some things, when it is on.
type gag struct {
	store.Store
	on      atomic.Bool
	refuses func(store.Txn) bool
}

func (g *gag) Commit(ctx context.Context, t store.Txn) (store.Answer, error) {
	if g.on.Load() && g.refuses(t) {
		return store.Answer{}, errors.New("it is too large to get there")
	}
	return g.Store.Commit(ctx, t)
}

// decides reports whether a transaction writes to job/current.
func decides(t store.Txn) bool {
	return slices.ContainsFunc(t.Puts, func(p store.Put) bool { return strings.HasSuffix(p.Key, "/job/current") })
}

// writes reports whether a transaction would change anything.
func writes(t store.Txn) bool { return len(t.Puts)+len(t.Deletes) > 0 }

// TestLeaderThatCannotWrite is no longer the leader although it reads, and renews its lease. If it cannot even resign, its lease runs out.
func TestLeaderThatCannotWrite(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for what, c := range map[string]struct {
		refuses func(store.Txn) bool
		size    int // of the next round
	}{"what it decides": {decides, 3}, "anything": {writes, 2}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server.client(), 2, 3)
			gags := make(map[*agent]*gag)
			var agents []*agent
			for _, id := range []string{"n0", "n1", "n2"} {
				g := &gag{Store: server.client(), refuses: c.refuses}
				a := j.agent(id, func(c *Config) { c.Store = g })
				agents, gags[a] = append(agents, a), g
			}
			rounds := together(t, agents)
			leader, rest, left := j.split(t, agents, rounds)
			gags[leader].on.Store(true)
			rest[0].report(left[0], failure(rest[0], left[0].Self, 3))
			wantNewRound(t, left)
			again := rest
			if c.size == 3 {
				wantNewRound(t, rounds)
				again = agents
			}
			if r := together(t, again)[0]; r.ID != 2 || r.Size != c.size {
				t.Errorf("the second round is %s", show(r))
			}
			gags[leader].on.Store(false)
		})
	}
}
