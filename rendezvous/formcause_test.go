package rendezvous_test

import (
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestLostNodesMakeOthersFail: workers fail when those of a node that is lost are gone, and that is reported first.
func TestLostNodesMakeOthersFail(t *testing.T) {
	failed := &rendezvous.Failure{Death: death.Death{Host: "n1", ExitCode: 1}}
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
		{2, rendezvous.Failure{Death: death.Death{ExitCode: 1}}, time.Second},
		{2, rendezvous.Failure{Death: death.Death{ExitCode: -6}}, time.Second},
		{2, rendezvous.Failure{Death: death.Death{ExitCode: -9}}, 0},
		{2, rendezvous.Failure{Death: death.Death{ExitCode: 93}, Final: true}, 0},
		{1, rendezvous.Failure{Death: death.Death{ExitCode: 1}}, 0},
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

// TestUnheardMembers: the job does not end with the last failure while a member may have ended unnoticed: one that
// has no connection to the leader, and has not reported. Its lease shows whether it lives, a new one if the leader has been cut off.
func TestUnheardMembers(t *testing.T) {
	failed := &rendezvous.Failure{Death: death.Death{Host: "n1", ExitCode: 1}}
	begin := func() *cluster {
		c := newCluster(2, 3, 0)
		c.s.Lease = 10 * time.Second
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
	for _, cutOff := range []bool{false, true} {
		c := begin()
		if cutOff {
			c.s.Settled = false
			wantReason(t, c.settle(time.Minute), "round 1: rank 0 on n1: exit code 1; n2 may be gone")
		}
		c.die("n2")
		c.s.Settled = true
		c.settle(0)
		c.again("n1", "n3")
		c.settle(0)
		c.wantRound(t, 2, "n1 n3", 0, "n2 is lost")
	}
	for name, heard := range map[string]func(*cluster){
		"connected": func(c *cluster) { c.s.Nodes[1].LeaseOnly = false },
		"reported": func(c *cluster) {
			c.report("n2", &rendezvous.Failure{Death: death.Death{Host: "n2", Rank: 1, ExitCode: 2}})
		},
		"alive": func(c *cluster) { c.settle(time.Second) },
	} {
		c := begin()
		heard(c)
		c.settle(0)
		if c.closed == nil || c.closed.Failure != failed {
			t.Errorf("%s: the job is closed: %+v", name, c.closed)
		}
	}
}

// TestVanishedMachines: a member whose machine has vanished is lost when its lease runs out. Until then, neither the
// next round forms without it nor does a failure end the job that names one of its workers as the cause. So the
// failure costs nothing.
func TestVanishedMachines(t *testing.T) {
	for restarts := range 2 {
		c := started(2, 3, restarts, 3)
		c.s.LastCall, c.s.Lease = time.Second, 10*time.Second
		c.report("n1", &rendezvous.Failure{Death: death.Death{Host: "n1", ExitCode: 1}, FailedPeer: &death.Peer{Rank: 1, Finder: 0}})
		for range 10 {
			c.settle(time.Second)
			if c.s.Over != nil && c.node("n1").Try == 1 {
				c.again("n1", "n3")
			}
		}
		c.die("n2")
		c.settle(0)
		if restarts == 0 {
			c.again("n1", "n3")
			c.settle(0)
		}
		c.wantRound(t, 2, "n1 n3", 0, "n2 is lost")
	}
}

// TestFailureWhileAMemberLeaves: it may be due to that, so it costs no restart and does not end the job, which goes
// on with a spare.
func TestFailureWhileAMemberLeaves(t *testing.T) {
	c := newCluster(2, 2, 0)
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.come(-1)
	c.node("n1").Leaving = true
	wantReason(t, c.settle(0), "round 1 is running with 2 of 2 nodes; spares: 1")
	c.report("n2", &rendezvous.Failure{Death: death.Death{ExitCode: 1, Cause: death.Unknown, Why: "it failed"}})
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
	c.report("n2", &rendezvous.Failure{Death: death.Death{ExitCode: 93, Cause: death.Unknown, Why: "it failed"}, Final: true})
	c.settle(0)
	c.again("n1")
	c.settle(0)
	c.wantRound(t, 3, "n1", 0, "rank 0 on : it failed; it asks for no restart: the job goes on without newcomer n2")
}
