package rendezvous_test

import (
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// TestLostNodesMakeOthersFail: workers fail when those of a node that is lost are gone, and that is reported first.
func TestLostNodesMakeOthersFail(t *testing.T) {
	failed := &rendezvous.Failure{Host: "n1", Rank: 0, Code: 1, Ending: "exit code 1"}
	for _, restarts := range []int{0, 1} {
		for _, test := range []struct {
			why  string
			goes func(*cluster)
		}{
			{"n2 is lost", func(c *cluster) { c.die("n2") }},
			{"n2 has left", func(c *cluster) {
				c.s.Reports = append(c.s.Reports, rendezvous.Report{Key: "n2", Left: &rendezvous.Outcome{}})
				c.die("n2")
			}},
		} {
			c := newCluster(2, 3, restarts)
			for range 3 {
				c.come(-1)
			}
			c.settle(0)
			c.report("n1", failed)
			c.settle(0)
			c.settle(time.Second / 2)
			test.goes(c)
			c.settle(0)
			c.again("n1", "n3")
			c.settle(0)
			c.wantRound(t, 2, "n1 n3", 0, test.why)
		}
	}
}

// TestLastFailure: the job does not end with it at once, unless nobody else can have caused it.
func TestLastFailure(t *testing.T) {
	for _, test := range []struct {
		nodes   int
		failure rendezvous.Failure
		after   time.Duration
	}{
		{2, rendezvous.Failure{Code: 1}, time.Second},
		{2, rendezvous.Failure{Code: 134, Signal: 6}, time.Second},
		{2, rendezvous.Failure{Code: 137, Signal: 9}, 0},
		{2, rendezvous.Failure{Code: 93, Final: true}, 0},
		{1, rendezvous.Failure{Code: 1}, 0},
	} {
		c := newCluster(test.nodes, test.nodes, 0)
		for range test.nodes {
			c.come(-1)
		}
		c.settle(0)
		c.report("n1", &test.failure)
		if d := c.settle(0); d.After != test.after {
			t.Errorf("%+v: it waits for %v, want %v", test.failure, d.After, test.after)
		}
		c.settle(test.after)
		if c.closed == nil || c.closed.Failure != &test.failure {
			t.Errorf("%+v: the job is closed: %+v", test.failure, c.closed)
		}
	}
}

// TestUnheardMembers: the job does not end with the last failure while a member may have ended unnoticed: one that has no tie, and has
// not reported. Its lease shows whether it lives.
func TestUnheardMembers(t *testing.T) {
	failed := &rendezvous.Failure{Host: "n1", Rank: 0, Code: 1, Ending: "exit code 1"}
	begin := func() *cluster {
		c := newCluster(2, 3, 0)
		c.s.Lease, c.slow = 10*time.Second, true
		for range 3 {
			c.come(-1)
		}
		c.settle(0)
		for i := range c.s.Nodes {
			c.s.Nodes[i].LeaseOnly = c.s.Nodes[i].Key != "n3"
		}
		c.report("n1", failed)
		if d := c.settle(0); d.After != 11*time.Second {
			t.Errorf("it waits for %v, want 11 s: %+v", d.After, d)
		}
		c.settle(10 * time.Second)
		return c
	}
	c := begin()
	c.die("n2")
	c.settle(0)
	c.again("n1", "n3")
	c.settle(0)
	c.wantRound(t, 2, "n1 n3", 0, "n2 is lost")
	for name, heard := range map[string]func(*cluster){
		"tied":     func(c *cluster) { c.s.Nodes[1].LeaseOnly = false },
		"reported": func(c *cluster) { c.report("n2", &rendezvous.Failure{Host: "n2", Rank: 1, Code: 2}) },
		"alive":    func(c *cluster) { c.settle(time.Second) },
	} {
		c := begin()
		heard(c)
		c.settle(0)
		if c.closed == nil || c.closed.Failure != failed {
			t.Errorf("%s: the job is closed: %+v", name, c.closed)
		}
	}
}

// TestMembersProbe: the job does not end with the last failure until all members have said whom they cannot reach, even if the worker
// that failed names nobody.
func TestMembersProbe(t *testing.T) {
	failed := &rendezvous.Failure{Host: "n3", Rank: 2, Code: 1, Ending: "exit code 1"}
	begin := func(nodes, maxRestarts int) *cluster {
		c := started(2, nodes, maxRestarts, nodes)
		c.slow = true
		c.report("n3", failed)
		return c
	}

	c := begin(3, 0)
	if d := c.settle(0); !d.Probe || d.After != 10*time.Second {
		t.Errorf("%+v follows", d)
	}
	c.settle(4 * time.Second)
	c.cut("n1>n2")
	c.settle(0)
	c.rejoin()
	c.settle(0)
	c.wantRound(t, 2, "n1 n3", 0, "n1 cannot reach n2 at 10.0.0.2:4711; going on without n2 until they reach each other"+advice)

	// Members that reach each other say so at once.
	c = begin(3, 0)
	c.settle(0)
	c.slow = false
	if d := c.settle(time.Second / 2); d.After != time.Second/2 {
		t.Errorf("%+v follows", d)
	}
	c.settle(time.Second / 2)
	if c.closed == nil || c.closed.Failure != failed {
		t.Errorf("closed: %+v", c.closed)
	}

	// If a member says nothing, the job ends all the same.
	c = begin(3, 0)
	c.settle(0)
	c.settle(9 * time.Second)
	if c.closed != nil {
		t.Errorf("closed: %+v", c.closed)
	}
	c.settle(time.Second)
	if c.closed == nil || c.closed.Failure != failed {
		t.Errorf("closed: %+v", c.closed)
	}

	// If the round has more members than PeersLimit, nobody is asked.
	c = begin(rendezvous.PeersLimit+1, 0)
	if d := c.settle(0); d.Probe || d.After != time.Second {
		t.Errorf("%+v follows", d)
	}

	// If a restart is left, the round is over at once, and members probe before they join the next one. The last call waits for them,
	// however short it is: without that, the next round could do without some of them.
	c = begin(4, 1)
	c.s.LastCall = time.Second
	c.settle(0)
	c.again("n1", "n3")
	wantReason(t, c.settle(0), "round 2: 2 of 2 to 4 nodes; n2 and n4 have not joined again; closes in 10s")
	c.settle(4 * time.Second)
	c.cut("n2>n4 n4>n2")
	c.settle(0)
	c.again("n2", "n4")
	c.settle(0)
	c.wantRound(t, 2, "n1 n2 n3", 0, "n2 cannot reach n4 at 10.0.0.4:4711; going on without n4 until they reach each other"+advice)
}

// TestFailureWhileAMemberLeaves: it may be due to that, so it costs no restart and does not end the job, which goes on with a spare.
func TestFailureWhileAMemberLeaves(t *testing.T) {
	c := newCluster(2, 2, 0)
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.come(-1)
	c.node("n1").Leaving = true
	wantReason(t, c.settle(0), "round 1 is running with 2 of 2 nodes; spares: 1")
	c.report("n2", &rendezvous.Failure{Code: 1, Ending: "it failed"})
	wantReason(t, c.settle(0), "round 2: 1 of 2 nodes; n1 is leaving; n2 has not joined again; gives up in 10m0s")
	c.again("n2")
	c.settle(0)
	c.wantRound(t, 2, "n3 n2", 0, "n1 is leaving")
}

// TestUnfitNewcomerIsNotAwaited: the job goes on without it, however long its other workers take to end.
func TestUnfitNewcomerIsNotAwaited(t *testing.T) {
	c := newCluster(1, 2, 0)
	c.come(-1)
	c.settle(0)
	c.settle(waits)
	c.come(-1)
	c.settle(0)
	c.again("n1")
	c.settle(0)
	c.node("n2").Node.StopTimeout = time.Hour
	c.report("n2", &rendezvous.Failure{Code: 93, Ending: "it failed", Final: true})
	c.settle(0)
	c.again("n1")
	c.settle(0)
	c.wantRound(t, 3, "n1", 0, "rank 0 on : it failed; it asks for no restart: the job goes on without newcomer n2")
}
