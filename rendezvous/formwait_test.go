package rendezvous_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestBusyNodesAreWaitedFor: for as long as their workers may take to end, even if the last call is shorter. Otherwise each of two nodes would form
// rounds by itself while the other one is still ending its workers, for ever.
func TestBusyNodesAreWaitedFor(t *testing.T) {
	const lastCall = time.Second
	begin := func() *cluster {
		c := newCluster(1, 3, 0)
		c.s.LastCall = lastCall
		c.come(-1)
		c.settle(0)
		c.settle(lastCall)
		c.node("n1").Node.StopTimeout = 20 * time.Second
		c.come(-1)
		c.settle(0)
		c.settle(lastCall)
		wantReason(t, c.settle(0), "round 2: 1 of 1 to 3 nodes; n1 has not joined again; closes in 25s")
		wantReason(t, c.settle(24*time.Second), "round 2: 1 of 1 to 3 nodes; n1 has not joined again; closes in 1s")
		return c
	}
	why := "more nodes have come: 1"

	c := begin()
	c.again("n1")
	c.settle(0)
	c.wantRound(t, 2, "n1 n2", 0, why)

	c = begin()
	c.settle(time.Second) // its agent should have killed them
	c.wantRound(t, 2, "n2", 0, why)

	c = begin()
	c.die("n1")
	c.settle(0)
	c.wantRound(t, 2, "n2", 0, why)

	c = begin()
	c.node("n1").Leaving = true
	c.settle(0)
	c.wantRound(t, 2, "n2", 0, why)

	c = begin() // it does not come too late if it is a spare then
	c.s.Max = 1
	c.settle(0)
	c.wantRound(t, 2, "n2", 0, why)
}

// TestTheJobDoesNotEndWhileNodesStop: even if their workers may take longer than there is time for the least number of nodes to come.
func TestTheJobDoesNotEndWhileNodesStop(t *testing.T) {
	c := newCluster(2, 2, 1)
	c.s.JoinTimeout = 6 * time.Second
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.node("n1").Node.StopTimeout = 10 * time.Second
	c.report("n2", &rendezvous.Failure{Death: death.Death{ExitCode: 1, Cause: death.Unknown, Why: "it failed"}})
	c.settle(0)
	c.again("n2")
	wantReason(t, c.settle(0), "round 2: 1 of 2 nodes; n1 has not joined again; gives up in 15s")
	c.settle(14 * time.Second)
	if c.closed != nil {
		t.Fatalf("the job is closed: %+v", *c.closed)
	}
	d := c.settle(time.Second)
	if want := "not enough nodes: round 2: 1 of 2 nodes after 15s; n1 has not joined again"; c.closed == nil || c.closed.Reason != want {
		t.Errorf("the job is not closed because of %q: %s, %+v", want, d.Reason(), c.closed)
	}
}

// TestOnlyNodesThatWouldGetInAreWaitedFor for longer than the last call.
func TestOnlyNodesThatWouldGetInAreWaitedFor(t *testing.T) {
	for name, change := range map[string]func(c *cluster){
		"fewer nodes are wanted": func(c *cluster) { c.s.Max = 2 },
		"apart": func(c *cluster) {
			c.s.Unreachable = []rendezvous.Unreachable{{From: "n1", To: "n3"}, {From: "n2", To: "n3"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1, 3, 0)
			for range 3 {
				c.come(-1)
			}
			c.settle(0)
			c.settle(waits)
			for _, key := range []string{"n1", "n2", "n3"} {
				c.node(key).Node.StopTimeout = 9 * time.Minute
			}
			change(c)
			c.settle(0)
			c.again("n1", "n2")
			if d := c.settle(0); c.s.Over == nil || d.After > 30*time.Second {
				t.Errorf("it waits for %s", d.Reason())
			}
			c.settle(30 * time.Second)
			if last := c.s.Last; last.ID != 2 || keys(last.Members) != "n1 n2" {
				t.Errorf("round %d is %s, want round 2 of n1 n2", last.ID, keys(last.Members))
			}
		})
	}
}

// TestNodesThatEndSlowly: however long the workers of each node take to end, within their time and joinTime after it, all nodes are in the
// round that follows when one has come, or when a worker has failed.
func TestNodesThatEndSlowly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seconds := func(from, to int, of string) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(rt, of)) * time.Second
		}
		nodes := rapid.IntRange(1, 4).Draw(rt, "nodes")
		c := newCluster(rapid.IntRange(1, nodes).Draw(rt, "least"), 5, 1)
		c.s.LastCall = seconds(1, 40, "last call")
		for range nodes {
			c.come(-1)
		}
		c.settle(0)
		c.settle(waits)
		ends := map[string]time.Duration{}
		for i := range c.s.Nodes {
			n := &c.s.Nodes[i]
			n.Node.StopTimeout = seconds(0, 60, "stop timeout")
			ends[n.Key] = time.Duration(rapid.IntRange(0, int(n.Node.StopTimeout/time.Second)+4).Draw(rt, "ends after")) * time.Second
		}
		want := nodes
		if rapid.Bool().Draw(rt, "a worker fails") {
			c.report("n1", &rendezvous.Failure{Death: death.Death{ExitCode: 1}})
			c.settle(0)
		} else {
			c.come(-1)
			want++
			if c.settle(0); c.s.Over == nil {
				c.settle(c.s.LastCall)
			}
		}
		if c.s.Over == nil {
			rt.Fatalf("round 1 is not over: %s", c.settle(0).Reason())
		}
		for passed := time.Duration(0); passed < 70*time.Second; passed += time.Second {
			for key, after := range ends {
				if after == passed {
					c.again(key)
				}
			}
			c.settle(0)
			c.settle(time.Second)
		}
		if last := c.s.Last; last.ID != 2 || len(last.Members) != want {
			rt.Fatalf("round %d is %s, want round 2 of %d nodes", last.ID, keys(last.Members), want)
		}
	})
}
