package etcd

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// TestOutage: etcd is away for longer than a lease lasts, and comes back with its data and without its history.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 3, 3)
	j.config.Lease = 5 * time.Second // which no agent loses because the machine is busy
	agents := j.agents(3)
	rounds := together(t, agents)

	server.stop()
	time.Sleep(2 * j.config.Lease) // what is tested is that nothing happens meanwhile
	for _, r := range rounds {
		if r.Err() != nil {
			t.Errorf("while etcd is away, round %d is over: %v", r.ID, r.Err())
		}
	}
	server.again()
	server.compact()

	succeed(t, agents, fail(t, agents, rounds)) // in round 1 as if nothing had been
}

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
	agents, ways := j.agentsBehindRelays(server, 3)
	rounds := together(t, agents)
	for _, way := range ways {
		way.set(true)
	}
	nodes, err := j.client.Get(t.Context(), keysOf(DefaultPrefix, j.config.RunID).nodes(), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range nodes.Kvs {
		if _, err := j.client.Revoke(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
			t.Fatal(err)
		}
	}
	for i, way := range ways {
		way.set(false)
		awaitKeys(t, j, "nodes/", i+1)
		if i == 0 { // it leads, and misses the others
			await(t, agents[0], func(m *stateMachine) bool { return m.leader.leads() && m.conn.view.whole })
		}
	}
	succeed(t, agents, rounds) // of round 1
}

// TestMissedRound: a round is over, and its history compacted, before one of its members has heard of it.
func TestMissedRound(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 2)
	j.config.Lease = 10 * time.Second
	agents, ways := j.agentsBehindRelays(server, 2)
	missing := later(agents[1])
	awaitKeys(t, j, "nodes/", 1)
	ways[1].set(true)
	await(t, agents[1], func(m *stateMachine) bool { return !m.conn.outage.IsZero() || m.conn.leaseErr != nil })

	// Another one leads, since the missing node may not know that it does.
	leader := keysOf(DefaultPrefix, j.config.RunID).leader()
	if _, err := j.client.Delete(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	round, err := agents[0].join()
	if err != nil {
		t.Fatal(err)
	}
	agents[0].report(round, failure(agents[0], 0, 3))
	wantNewRound(t, []*rendezvous.Round{round})
	next := later(agents[0])
	server.compact()
	ways[1].set(false)
	both := []*rendezvous.Round{next(t), missing(t)}
	same(t, both)
	if both[0].ID != 2 {
		t.Errorf("the round is %s", show(both[0]))
	}
}

// TestOneLeaseIsLost: the others go on without that node, and it comes back as a newcomer. It cannot come back before they
// have noticed: then nothing would follow.
func TestOneLeaseIsLost(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 2)
	agents, ways := j.agentsBehindRelays(server, 2)
	first := together(t, agents)
	leader := j.leader(t)
	lost := slices.IndexFunc(agents, func(a *agent) bool { return a.key() != leader })
	key := keysOf(DefaultPrefix, j.config.RunID).node(agents[lost].key())
	answer, err := j.client.Get(t.Context(), key)
	if err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("node %d: %v, %v", lost, answer, err)
	}
	ways[lost].set(true)
	if _, err := j.client.Revoke(t.Context(), clientv3.LeaseID(answer.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	wantNewRound(t, []*rendezvous.Round{first[1-lost]})
	ways[lost].set(false)
	wantNewRound(t, []*rendezvous.Round{first[lost]})
	if r := together(t, agents)[0]; r.ID != 2 || r.Restarts != 0 {
		t.Errorf("the second round is %s", show(r))
	}
}

// TestLeaderIsCutOff: the others go on without it, and it finds out when it is back.
func TestLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 3)
	agents, ways := j.agentsBehindRelays(server, 3)
	first := together(t, agents)
	var way *relay
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
	way.set(true)
	wantNewRound(t, left)
	if second := together(t, rest)[0]; second.ID != 2 || second.Size != 2 {
		t.Errorf("the second round is %s", show(second))
	}
	if its.Err() != nil {
		t.Errorf("the leader's round is over without news: %v", its.Err())
	}
	way.set(false)
	wantNewRound(t, []*rendezvous.Round{its})
}

// TestNoEtcd: a Join gives up after the JoinTimeout, and is not told before that there is no hope.
func TestNoEtcd(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := server.client()
	server.front.set(true)
	j := newJob(t, client, 1, 1)
	j.config.JoinTimeout = time.Second
	a := j.agent("a", nil)
	_, err := a.join()
	if want := "etcd cannot be used: [" + server.front.addr() + "]: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Join = %v, want %s...", err, want)
	}
	server.front.set(false)
	together(t, []*agent{a})
}

// TestRefusals are not waited out.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	client := server.client()
	for _, err := range []error{
		second(client.RoleAdd(t.Context(), "root")),
		second(client.UserAdd(t.Context(), "root", "pass")),
		second(client.UserGrantRole(t.Context(), "root", "root")),
		second(client.UserAdd(t.Context(), "nobody", "pass")),
		second(client.AuthEnable(t.Context())),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ user, password, want string }{
		{"", "", "etcdserver: user name is empty"},
		{"root", "wrong", "etcdserver: authentication failed, invalid user ID or password"},
		{"nobody", "pass", "etcd does not let user nobody read and write the keys below /gorun/v1/: give it a role that may"},
		{"root", "pass", ""},
	} {
		r, err := New(Config{
			Config: rendezvous.Config{
				Access: rendezvous.Access{Endpoints: endpoints(t, server.front.addr()), User: c.user},
				RunID:  t.Name(), Rules: rendezvous.Rules{Min: 1, Max: 1}, Reserve: reserve,
			},
			Password: c.password,
		})
		if err == nil {
			_, err = r.Join(t.Context(), rendezvous.Node{ID: "a", Host: "a", Nproc: 1})
			if err := r.Close(t.Context(), nil); err != nil && c.want == "" {
				t.Errorf("user %q: Close: %v", c.user, err)
			}
		}
		if _, misuse := errors.AsType[*rendezvous.MisuseError](err); err != nil && !misuse {
			t.Errorf("user %q, password %q: %v is a %[3]T, which waiting may mend", c.user, c.password, err)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("user %q, password %q: %v, want %q", c.user, c.password, err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestNewerGorun: what a newer version has written is not guessed at.
func TestNewerGorun(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 1, 1)
	key := keysOf(DefaultPrefix, j.config.RunID).current()
	if _, err := j.client.Put(t.Context(), key, `{"version":3}`); err != nil {
		t.Fatal(err)
	}
	_, err := j.agent("a", nil).join()
	want := "etcd key " + key + ": version 3, but this gorun uses version 2: all nodes need the same version of gorun"
	if err == nil || err.Error() != want {
		t.Errorf("Join = %v, want %s", err, want)
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	good := Config{Config: rendezvous.Config{
		Access: rendezvous.Access{Endpoints: endpoints(t, "localhost:1")}, RunID: "r", Rules: rendezvous.Rules{Min: 1, Max: 1}, Reserve: reserve,
	}}
	for want, change := range map[string]func(*Config){
		"no run ID: want one that all nodes of the job share":                           func(c *Config) { c.RunID = "" },
		"no endpoint: want host:port":                                                   func(c *Config) { c.Endpoints = nil },
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
		if _, err := New(c); err == nil || err.Error() != "etcd: "+want {
			t.Errorf("New = %v, want etcd: %s", err, want)
		}
	}
}
