package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// without has etcd come back without its data, and calls f before the agents find out.
func (j *job) without(ways []*relay, f func()) {
	j.t.Helper()
	for _, way := range ways {
		way.set(true)
	}
	empty(j.t, j.client, keysOf(DefaultPrefix, j.config.RunID).root)
	f()
	for _, way := range ways {
		way.set(false)
	}
}

// empty has etcd forget all leases, and what is below root.
func empty(t *testing.T, client *clientv3.Client, root string) {
	t.Helper()
	leases, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if _, err := client.Revoke(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	if left := keysLeft(t, client, root); len(left) > 0 {
		t.Fatalf("there is left %q", left)
	}
}

// TestNewcomerInAnEmptyEtcd with a node rank that a live node has: it is refused, though it was there first, and the others go on.
func TestNewcomerInAnEmptyEtcd(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for _, rank := range []int{0, 1} {
		j := newJob(t, server.client(), 2, 2)
		j.config.RunID += string(rune('a' + rank))
		agents, ways := j.agentsBehindRelays(server, 2)
		for i, a := range agents {
			a.node.NodeRank = i
		}
		rounds := together(t, agents)
		newcomer := j.agent("new", nil)
		newcomer.node.NodeRank = rank
		refused := make(chan error, 1)
		j.without(ways, func() {
			go func() { _, err := newcomer.join(); refused <- err }()
			awaitKeys(t, j, "job/leader", 1)
			awaitKeys(t, j, "ranks/", 1)
		})
		err := <-refused
		if _, misuse := errors.AsType[*rendezvous.MisuseError](err); !misuse {
			t.Errorf("rank %d: Join = %v, want a MisuseError", rank, err)
		}
		newcomer.leave(nil)
		awaitKeys(t, j, "nodes/", 2)
		awaitKeys(t, j, "ranks/", 2)
		for _, r := range rounds {
			if err := r.Err(); err != nil {
				t.Fatalf("rank %d: the round is over: %v", rank, err)
			}
		}
		fail(t, agents, rounds)
	}
}

// TestNewcomersRoundInAnEmptyEtcd gives way to the job that is put back, whose workers go on. The newcomers are spares of that job.
func TestNewcomersRoundInAnEmptyEtcd(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for what, end := range map[string]bool{"running": false, "closed": true} {
		j := newJob(t, server.client(), 2, 2)
		j.config.Lease = 20 * time.Second // nobody is lost
		j.config.RunID += what
		agents, ways := j.agentsBehindRelays(server, 2)
		rounds := together(t, agents)
		newcomers := []*agent{j.agent("new0", nil), j.agent("new1", nil)}
		var theirs []*rendezvous.Round
		j.without(ways, func() {
			theirs = together(t, newcomers)
			if end {
				for i, a := range newcomers {
					a.report(theirs[i], nil)
				}
				closed(t, over(t, theirs[0]))
			}
		})
		if !end {
			wantNewRound(t, theirs)
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			for _, a := range newcomers {
				go func() { _, _ = a.Join(ctx, a.node) }()
			}
			awaitKeys(t, j, "nodes/", 4)
		}
		for _, r := range rounds {
			if err := r.Err(); err != nil {
				t.Fatalf("%s: the round is over: %v", what, err)
			}
		}
		succeed(t, agents, rounds)
	}
}

// TestPutBackSoon: when all members are back the leader decides at once; it need not wait for others who would know more.
func TestPutBackSoon(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 2)
	j.config.Lease = time.Minute // for which missing nodes would be waited for
	agents := j.agents(2)
	rounds := together(t, agents)
	server.stop()
	server.anew()
	awaitKeys(t, j, "nodes/", 2)
	back := time.Now()
	fail(t, agents, rounds)
	if took := time.Since(back); took > j.config.Lease/2 {
		t.Errorf("the next round took %v", took)
	}
}

// TestIsPutBack: a round can be put back more than once.
func TestIsPutBack(t *testing.T) {
	of := func(lease clientv3.LeaseID, round int, restored bool, over *rendezvous.Ending, rev int64) *view {
		v := &view{current: &currentDoc{Round: round, Restored: restored, Over: over}, currentRev: rev}
		v.config.lease = lease
		return v
	}
	over := &rendezvous.Ending{Why: "it is"}
	for what, c := range map[string]struct {
		now, past *view
		want      bool
	}{
		"never":                       {of(1, 2, false, nil, 5), of(1, 2, false, nil, 5), false},
		"the first time":              {of(2, 2, true, nil, 5), of(1, 2, false, nil, 5), true},
		"read first":                  {of(2, 2, true, nil, 5), nil, true},
		"read again":                  {of(2, 2, true, nil, 5), of(2, 2, true, nil, 5), false},
		"the job, once more":          {of(3, 2, true, nil, 5), of(2, 2, true, nil, 5), true},
		"the round, once more":        {of(2, 2, true, nil, 9), of(2, 2, true, nil, 5), true},
		"over since":                  {of(2, 2, true, over, 9), of(2, 2, true, nil, 5), false},
		"over, and the job once more": {of(3, 2, true, over, 9), of(2, 2, true, over, 9), true},
		"a later round":               {of(2, 3, false, nil, 9), of(2, 2, true, nil, 5), false},
	} {
		if got := c.now.isPutBack(c.past); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestLeaderHearsOfRounds: the leader reads the job when a member puts a round's document back, even if nothing else changes.
func TestLeaderHearsOfRounds(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	j.config.Lease = time.Minute // so that nothing else is written for longer than recheck
	agents := j.agents(2)
	rounds := together(t, agents)
	leader, _, _ := j.split(t, agents, rounds)
	k := keysOf(DefaultPrefix, j.config.RunID)
	docs, err := j.client.Get(t.Context(), k.rounds(), clientv3.WithPrefix())
	if err != nil || len(docs.Kvs) == 0 {
		t.Fatal(err, docs)
	}
	kv := docs.Kvs[0]
	put, err := j.client.Put(t.Context(), string(kv.Key), string(kv.Value), clientv3.WithLease(clientv3.LeaseID(kv.Lease)))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	await(t, leader, func(m *stateMachine) bool { return m.conn.view.rev >= put.Header.Revision })
	if took := time.Since(begun); took > recheck/2 {
		t.Errorf("it took %v", took)
	}
}
