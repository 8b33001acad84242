package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// TestNewcomersThatDiffer from a job that is running are told why they have no place in it, and disturb nobody.
func TestNewcomersThatDiffer(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 3)
	agents := j.agents(3)
	for i, a := range agents {
		a.node.NodeRank = i
	}
	agents, rounds := fewer(t, agents, 2)
	awaitKeys(t, j, "nodes/", 2)
	for what, c := range map[string]struct {
		config func(*Config)
		node   func(*rendezvous.Node)
		want   string
	}{
		"rank 0":       {node: func(n *rendezvous.Node) { n.NodeRank = 0 }, want: "node rank 0 is taken by n0 on n0.test: give this node another --node-rank, or none"},
		"no such rank": {node: func(n *rendezvous.Node) { n.NodeRank = 3 }, want: "node rank 3: want 0 to 2 for 3 nodes"},
		"more nodes":   {config: func(c *Config) { c.Max = 4 }, want: `this node: nnodes 2:4; the job: nnodes 2:3 (set by n`},
		"fewer nodes":  {config: func(c *Config) { c.Min = 1 }, want: `this node: nnodes 1:3; the job: nnodes 2:3 (set by n`},
		"restarts":     {config: func(c *Config) { c.MaxRestarts = 7 }, want: `this node: max_restarts 7; the job: max_restarts 1 (set by n`},
		"lease":        {config: func(c *Config) { c.Lease = time.Hour }, want: `this node: ttl 1h0m0s; the job: ttl 3s (set by n`},
		"last call":    {config: func(c *Config) { c.LastCall = time.Minute }, want: `this node: last_call_timeout 1m0s; the job: last_call_timeout `},
		"patience":     {config: func(c *Config) { c.JoinTimeout = time.Hour }, want: `this node: join_timeout 1h0m0s; the job: join_timeout `},
		"scale up":     {config: func(c *Config) { c.ScaleUp = rendezvous.ScaleNever }, want: `this node: scale_up never; the job: scale_up `},
		"master port":  {config: func(c *Config) { c.MasterPort = 1 }, want: `this node: master_port 1; the job: master_port `},
		"options":      {config: func(c *Config) { c.Settings = map[string]string{"worker_tls": "true"} }, want: `this node: worker_tls true; the job: worker_tls not set (set by n`},
		"no workers":   {node: func(n *rendezvous.Node) { n.Nproc = 0 }, want: "0 workers: want 1 to 1048576"},
		"world":        {node: func(n *rendezvous.Node) { n.Nproc = 1 << 19 }, want: "524288 workers: want at most 349525, since there may be 3 nodes"},
		"two lines":    {node: func(n *rendezvous.Node) { n.Role = "a\nb" }, want: `its role is "a\nb", want one line of text`},
		"long name":    {node: func(n *rendezvous.Node) { n.Host = strings.Repeat("x", 300) }, want: "its host has 300 bytes, want at most 255"},
		"no host":      {node: func(n *rendezvous.Node) { n.Host = "" }, want: "this node has no address at which others reach it"},
	} {
		config := func(*Config) {}
		if c.config != nil {
			config = c.config
		}
		a := j.agent("new", func(to *Config) { to.MasterPort = 0; config(to) })
		if c.node != nil {
			c.node(&a.node)
		}
		_, err := a.join()
		if _, misuse := errors.AsType[*rendezvous.MisuseError](err); !misuse || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Join = %v, want a MisuseError: %s", what, err, c.want)
		}
		a.leave(nil)
		awaitKeys(t, j, "nodes/", 2)
		for _, r := range rounds {
			if err := r.Err(); err != nil {
				t.Fatalf("%s: round %d is over: %v", what, r.ID, err)
			}
		}
	}

	// One that does not differ gets in.
	a := j.agent("n2", nil)
	a.node.NodeRank = 2
	joined := later(a)
	wantNewRound(t, rounds)
	same(t, append(together(t, agents), joined(t)))
}

// TestTheSameNodeComesBack although etcd still has the one that it comes instead of: when that has proved to be dead.
func TestTheSameNodeComesBack(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for name, end := range map[string]func(*agent){"killed": (*agent).kill, "vanished": (*agent).vanish, "left": func(a *agent) { a.leave(nil) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, client, 2, 2)
			agents := j.agents(2)
			for i, a := range agents {
				a.node.NodeRank = i
			}
			rounds := together(t, agents)
			end(agents[1])
			agents[1] = j.agent("n1", nil)
			agents[1].node.NodeRank = 1
			joined := later(agents[1])
			wantNewRound(t, rounds[:1])
			again := append(together(t, agents[:1]), joined(t))
			same(t, again)
			if again[1].Self != 1 {
				t.Errorf("it has rank %d, want 1", again[1].Self)
			}
		})
	}
}

// TestNewcomerWithoutRank: a node that asks for no rank is not refused because another node has one.
func TestNewcomerWithoutRank(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 1, 1)
	first, newcomer := j.agent("n0", nil), j.agent("n1", nil)
	first.node.NodeRank = 0
	together(t, []*agent{first})
	for rank, want := range map[int]bool{-1: false, 0: true, 1: false} {
		s, err := newcomer.driver.executor.precondition(t.Context(), rank)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.isTaken(newcomer.key()); got != want {
			t.Errorf("node rank %d is taken: %t", rank, got)
		}
	}
}
