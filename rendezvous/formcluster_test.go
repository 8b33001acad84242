package rendezvous_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// cluster is a job as a leader sees it, and what has become of it.
type cluster struct {
	s      rendezvous.State
	came   int
	closed *rendezvous.Outcome
	formed []rendezvous.Formed
}

// waits is how long it takes until every stage ends.
const waits = time.Hour

func newCluster(least, most, maxRestarts int) *cluster {
	return &cluster{s: rendezvous.State{Settled: true, Rules: rendezvous.Rules{
		Min: least, Max: most, MaxRestarts: maxRestarts,
		ScaleUp: rendezvous.ScaleImmediate, LastCall: 30 * time.Second, JoinTimeout: 10 * time.Minute,
	}}}
}

// come adds a node, and returns its key.
func (c *cluster) come(rank int) string { return c.comeFrom("", rank) }

// comeFrom adds one of a certain host.
func (c *cluster) comeFrom(host string, rank int) string {
	c.came++
	name := fmt.Sprint("n", c.came)
	c.s.Nodes = append(c.s.Nodes, rendezvous.Candidate{
		Key: name, Node: rendezvous.Node{ID: name, Host: cmp.Or(host, name), NodeRank: rank, Nproc: 1}, Port: c.came,
		Since: int64(c.came), Joining: true, Try: 1,
	})
	return name
}

func (c *cluster) node(key string) *rendezvous.Candidate {
	for i := range c.s.Nodes {
		if c.s.Nodes[i].Key == key {
			return &c.s.Nodes[i]
		}
	}
	return nil
}

// again has a node join the next round.
func (c *cluster) again(keys ...string) {
	for _, key := range keys {
		n := c.node(key)
		n.Joining, n.Try = true, n.Try+1
	}
}

func (c *cluster) die(key string) {
	c.s.Nodes = slices.DeleteFunc(c.s.Nodes, func(n rendezvous.Candidate) bool { return n.Key == key })
}

// leave is how a node goes that says why.
func (c *cluster) leave(key string, why rendezvous.Outcome) {
	c.s.Reports = append(c.s.Reports, rendezvous.Report{Key: key, Left: &why})
	c.die(key)
}

// withdraw has a node wait no longer, for which a round may have formed.
func (c *cluster) withdraw(key string) {
	n := c.node(key)
	n.Joining, n.Try = false, n.Try+1
}

func (c *cluster) report(key string, f *rendezvous.Failure) {
	c.s.Reports = append(c.s.Reports, rendezvous.Report{Key: key, Failure: f})
}

// settle does what Form says until it waits. passed is the time since the last decision.
func (c *cluster) settle(passed time.Duration) rendezvous.Decision {
	c.s.Waited += passed
	c.s.Age += passed
	for c.closed == nil {
		d := rendezvous.Form(c.s)
		switch {
		case d.Close != nil:
			c.closed = d.Close
		case d.Over != nil:
			c.s.Over = d.Over
		case d.Form != nil:
			c.formed = append(c.formed, *d.Form)
			c.s.Last, c.s.Over, c.s.Reports, c.s.Age = d.Form, nil, nil, 0
		default:
			if d.Stage != c.s.Stage {
				c.s.Stage, c.s.Waited = d.Stage, 0
			}
			return d
		}
	}
	return rendezvous.Decision{}
}

func keys(members []rendezvous.Candidate) string {
	var all []string
	for _, m := range members {
		all = append(all, m.Key)
	}
	return strings.Join(all, " ")
}

func (c *cluster) wantRound(t *testing.T, id int, members string, restarts int, why string) {
	t.Helper()
	if c.closed != nil {
		t.Fatalf("the job is closed: %+v", *c.closed)
	}
	last := c.s.Last
	if last == nil || c.s.Over != nil {
		t.Fatalf("no round is running: %s", c.settle(0).Reason())
	}
	if last.ID != id || keys(last.Members) != members || last.Restarts != restarts || rendezvous.Because(last.Cause, last.Why) != why {
		t.Fatalf("round %d of %s, %d restarts, %q; want round %d of %s, %d restarts, %q",
			last.ID, keys(last.Members), last.Restarts, rendezvous.Because(last.Cause, last.Why), id, members, restarts, why)
	}
}

func wantReason(t *testing.T, d rendezvous.Decision, want string) {
	t.Helper()
	if d.Reason() != want {
		t.Fatalf("it waits for %q, want %q", d.Reason(), want)
	}
}
