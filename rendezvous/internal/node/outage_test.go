package node

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// TestReportDuringAnOutage is recorded after it.
func TestReportDuringAnOutage(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	agents := newJob(t, server.client(), 2, 2).agents(2)
	rounds := together(t, agents)
	server.stop()
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		var all sync.WaitGroup
		for i, a := range agents {
			all.Go(func() { a.report(rounds[i], nil) })
		}
		all.Wait()
	}()
	for _, a := range agents { // until it has been tried in vain
		await(t, a, func(m *stateMachine) bool { return m.member.report != nil && !m.conn.outage.IsZero() })
	}
	select {
	case <-recorded:
		t.Error("a report is recorded without etcd")
	default:
	}
	server.again()
	<-recorded
	if o := closed(t, over(t, rounds[0])); o != (rendezvous.Outcome{}) {
		t.Errorf("the job ended with %+v", o)
	}
}

// TestAllAreCutOff until etcd has forgotten them. They come back as the nodes that they were, one after the other, in the
// same round.
func TestAllAreCutOff(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 3, 3)
	j.config.Lease = 10 * time.Second
	agents, ways := j.agentsBehindWays(server, 3)
	rounds := together(t, agents)
	for _, way := range ways {
		way.setCut(true)
	}
	for _, kv := range j.nodes() {
		server.memory.End(kv.Lease)
	}
	for i, way := range ways {
		way.setCut(false)
		awaitKeys(t, j, "nodes/", i+1)
		if i == 0 { // it leads, and misses the others
			await(t, agents[0], func(m *stateMachine) bool { return m.leader.leads() && m.conn.view.whole })
		}
	}
	succeed(t, agents, rounds) // of round 1
}

// TestLeaderIsCutOff: the others go on without it, and it finds out when it is back.
func TestLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 3)
	agents, ways := j.agentsBehindWays(server, 3)
	first := together(t, agents)
	var way *way
	var its *rendezvous.Round
	var rest []*agent
	var left []*rendezvous.Round
	for i, a := range agents {
		if a.key() == j.leader(t) {
			way, its = ways[i], first[i]
		} else {
			rest, left = append(rest, a), append(left, first[i])
		}
	}
	way.setCut(true)
	wantNewRound(t, left)
	if second := together(t, rest)[0]; second.ID != 2 || second.Size != 2 {
		t.Errorf("the second round is %s", show(second))
	}
	if its.Err() != nil {
		t.Errorf("the leader's round is over without news: %v", its.Err())
	}
	way.setCut(false)
	wantNewRound(t, []*rendezvous.Round{its})
}

// TestNoEtcd: a Join gives up after the JoinTimeout, and is not told before that there is no hope.
func TestNoEtcd(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.stop()
	j := newJob(t, server.client(), 1, 1)
	j.config.JoinTimeout, j.config.Endpoints = time.Second, []rendezvous.Endpoint{{Host: "h", Port: 1}}
	a := j.agent("a", nil)
	_, err := a.join()
	if want := "etcd cannot be used: [h:1]: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Join = %v, want %s...", err, want)
	}
	server.again()
	await(t, a, func(m *stateMachine) bool { return !m.conn.isAway() })
	together(t, []*agent{a})
}

// TestNewerGorun: what a newer version has written is not guessed at.
func TestNewerGorun(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 1, 1)
	key := keysOf(DefaultPrefix, j.config.RunID).current()
	a := j.agent("a", nil)
	write(t, &a.driver.executor.writer, key, `{"version":3}`)
	_, err := a.join()
	want := "etcd key " + key + ": version 3, but this gorun uses version 2: all nodes need the same version of gorun"
	if err == nil || err.Error() != want {
		t.Errorf("Join = %v, want %s", err, want)
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	good := Config{Config: rendezvous.Config{
		RunID: "r", Rules: rendezvous.Rules{Min: 1, Max: 1}, Reserve: reserve,
	}}
	for want, change := range map[string]func(*Config){
		"no run ID: want one that all nodes of the job share":                           func(c *Config) { c.RunID = "" },
		"3 to 2 nodes: want at least 1, and a minimum that does not exceed the maximum": func(c *Config) { c.Min, c.Max = 3, 2 },
		"-1 restarts: want 0 or more":                                                   func(c *Config) { c.MaxRestarts = -1 },
		"a timeout of -1s: want 0 or more":                                              func(c *Config) { c.LastCall = -time.Second },
		"a node is noticed to be dead after 10ms: want at least 1s":                     func(c *Config) { c.Lease = 10 * time.Millisecond },
		"4001 nodes: want at most 4000":                                                 func(c *Config) { c.Max = 4001 },
		`scale up "neve": want immediate, on-restart or never`:                          func(c *Config) { c.ScaleUp = "neve" },
		"nothing to reserve ports with":                                                 func(c *Config) { c.Reserve = nil },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || err.Error() != want {
			t.Errorf("New = %v, want %s", err, want)
		}
	}
}
