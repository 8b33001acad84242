package node

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

// split tells the leader and its round from the others.
func (j *job) split(t *testing.T, agents []*agent, rounds []*rendezvous.Round) (leader *agent, rest []*agent, left []*rendezvous.Round) {
	t.Helper()
	key := j.leader(t)
	for i, a := range agents {
		if a.key() == key {
			leader = a
		} else {
			rest, left = append(rest, a), append(left, rounds[i])
		}
	}
	if leader == nil {
		t.Fatalf("leader %s is none of the agents", key)
	}
	return leader, rest, left
}

// tied waits until the leader has a tie from so many agents.
func tied(t *testing.T, leader *agent, rest []*agent) {
	t.Helper()
	await(t, leader, func(m *stateMachine) bool {
		for _, a := range rest {
			if m.leader.connected[a.key()] == 0 {
				return false
			}
		}
		return true
	})
}

// TestAgentsEnd: whoever ends, the others go on long before a lease has run out.
func TestAgentsEnd(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 1, 6)
	j.config.Lease = time.Hour
	agents := j.agents(6)
	rounds := together(t, agents)
	for n, end := range []func(leader *agent, rest []*agent, left []*rendezvous.Round) ([]*agent, []*rendezvous.Round){
		// The leader dies.
		func(leader *agent, rest []*agent, left []*rendezvous.Round) ([]*agent, []*rendezvous.Round) {
			leader.kill()
			return rest, left
		},
		// Another one dies, and the leader stays.
		func(leader *agent, rest []*agent, left []*rendezvous.Round) ([]*agent, []*rendezvous.Round) {
			tied(t, leader, rest)
			rest[0].kill()
			return append(rest[1:], leader), left[1:]
		},
		// Two at a time, and then all but one.
		func(leader *agent, rest []*agent, left []*rendezvous.Round) ([]*agent, []*rendezvous.Round) {
			tied(t, leader, rest)
			rest[0].kill()
			rest[1].kill()
			return append(rest[2:], leader), left[2:]
		},
		func(leader *agent, rest []*agent, _ []*rendezvous.Round) ([]*agent, []*rendezvous.Round) {
			tied(t, leader, rest)
			rest[0].kill()
			return []*agent{leader}, nil
		},
	} {
		leader, rest, left := j.split(t, agents, rounds)
		agents, left = end(leader, rest, left)
		wantNewRound(t, left)
		rounds = together(t, agents)
		if r := rounds[0]; r.Size != len(agents) || r.ID < n+2 || r.Restarts != 0 {
			t.Errorf("the round is %s", show(r))
		}
	}
}

// TestCutTies: connections that are cut are made anew, and held against nobody, although the leader itself can call
// nobody.
func TestCutTies(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 3, 3)
	leader := j.agent("n0", func(c *Config) {
		c.dial = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	})
	joined := later(leader)
	await(t, leader, func(m *stateMachine) bool { return m.leader.leads() }) // and gets rank 0
	var mu sync.Mutex
	var calls []net.Conn
	j.config.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil {
			mu.Lock()
			calls = append(calls, c)
			mu.Unlock()
		}
		return c, err
	}
	rest := []*agent{j.agent("n1", nil), j.agent("n2", nil)}
	rounds := append(together(t, rest), joined(t))
	tied(t, leader, rest)
	mu.Lock()
	for _, c := range calls {
		_ = c.Close()
	}
	mu.Unlock()
	time.Sleep(time.Second) // what is tested is that nothing happens meanwhile
	tied(t, leader, rest)
	for _, r := range rounds {
		if err := r.Err(); err != nil {
			t.Errorf("the round is over: %v", err)
		}
	}
	succeed(t, append(rest, leader), rounds)
}

// TestAgentThatCannotCallEnds: the last tie to an agent that ends may be the leader's own.
func TestAgentThatCannotCallEnds(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 1, 2)
	j.config.Lease = time.Hour
	var mu sync.Mutex
	var calls []net.Conn
	mute := false
	leader := j.agent("n0", nil)
	joined := later(leader)
	await(t, leader, func(m *stateMachine) bool { return m.leader.leads() })
	other := j.agent("n1", func(c *Config) {
		c.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if mute {
				return nil, syscall.EHOSTUNREACH
			}
			conn, err := dial(ctx, network, addr)
			if err == nil {
				calls = append(calls, conn)
			}
			return conn, err
		}
	})
	rounds := append(together(t, []*agent{other}), joined(t))
	mu.Lock()
	mute = true
	for _, c := range calls {
		_ = c.Close()
	}
	mu.Unlock()
	key := other.key()
	await(t, leader, func(m *stateMachine) bool {
		p := m.member.peers[key]
		return p != nil && !p.lastSeen.IsZero() && m.leader.connected[key] == 0
	})
	other.kill()
	wantNewRound(t, rounds[1:])
}

// TestAgentsEndWhileEtcdIsSlow: that etcd does not answer for longer than it is waited for does not make a lease of an agent's end, nor
// of that of another one meanwhile.
func TestAgentsEndWhileEtcdIsSlow(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 1, 3)
	j.config.Lease = time.Hour
	var log testkit.Log
	j.config.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	agents, ways := j.agentsBehindWays(server, 3)
	rounds := together(t, agents)
	leader, rest, _ := j.split(t, agents, rounds)
	tied(t, leader, rest)
	at := slices.Index(agents, leader)
	way := ways[at]
	way.hush(true)
	rest[0].kill()
	await(t, leader, func(m *stateMachine) bool { return len(m.member.ended) == 1 && m.pending[evicting] })
	rest[1].kill()
	await(t, leader, func(m *stateMachine) bool { return len(m.member.ended) == 2 })
	await(t, leader, func(*stateMachine) bool { return strings.Contains(log.String(), "to_be_tried_again=1") })
	way.hush(false)
	wantNewRound(t, rounds[at:at+1])
	if r := together(t, []*agent{leader})[0]; r.Size != 1 {
		t.Errorf("the next round is %s", show(r))
	}
}

// TestNewLeaderEvicts whom it has known to have ended since before it led. Nobody else does, as the connections of the dead have broken.
func TestNewLeaderEvicts(t *testing.T) {
	t.Parallel()
	m := idle()
	m.conn.lease, m.conn.renewAt = 7, time.Now().Add(time.Hour)
	v := &view{whole: true, leader: &leaderDoc{Key: "other"}, nodeTable: nodeTable{nodes: map[string]knownNode{"peer": {rev: 1}}}}
	m.conn.view, m.member.peers["peer"] = v, &peer{key: "peer"}
	m.Step(time.Now(), agentEnded{"peer", "a:1"})
	m.Step(time.Now(), agentEnded{"stranger", "a:2"})
	if m.pending[evicting] {
		t.Error("a node evicts that does not lead")
	}
	now := *v
	now.leader, now.leaderLease = &leaderDoc{Key: "k"}, 7
	m.conn.view = &now
	for _, a := range m.Step(time.Now(), ticked{}) {
		if r, is := requestOf[*evictAgents](a); is && len(r.ended) == 1 && r.ended["peer"] == "a:1" {
			return
		}
	}
	t.Errorf("the new leader evicts none of %v", m.member.ended)
}
