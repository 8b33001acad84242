package rendezvous_test

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

func TestFixedSize(t *testing.T) {
	c := newCluster(3, 3, 1)
	c.come(-1)
	c.come(-1)
	wantReason(t, c.settle(0), "round 1: 2 of 3 nodes; gives up in 10m0s")
	wantReason(t, c.settle(time.Minute), "round 1: 2 of 3 nodes; gives up in 9m0s")
	c.come(-1)
	c.settle(0)
	c.wantRound(t, 1, "n1 n2 n3", 0, "")

	// A spare waits, and gets in for a lost node.
	c.come(-1)
	wantReason(t, c.settle(waits), "round 1 is running with 3 of 3 nodes; spares: 1")
	c.die("n2")
	c.settle(0)
	c.again("n3")
	wantReason(t, c.settle(0), "round 2: 2 of 3 nodes; n2 is gone; n1 has not joined again; gives up in 10m0s")
	c.again("n1")
	c.settle(0)
	c.wantRound(t, 2, "n1 n4 n3", 0, "n2 is lost")
}

func TestElasticSize(t *testing.T) {
	c := newCluster(2, 4, 1)
	c.come(-1)
	wantReason(t, c.settle(0), "round 1: 1 of 2 to 4 nodes; gives up in 10m0s")
	c.come(-1)
	c.come(-1)
	wantReason(t, c.settle(0), "round 1: 3 of 2 to 4 nodes; closes in 30s")
	wantReason(t, c.settle(9*time.Second), "round 1: 3 of 2 to 4 nodes; closes in 21s")
	c.settle(21 * time.Second)
	c.wantRound(t, 1, "n1 n2 n3", 0, "")

	// Two newcomers: there is room for one.
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.again("n1", "n2")
	wantReason(t, c.settle(0), "round 2: 4 of 2 to 4 nodes; n3 has not joined again; closes in 30s")
	c.again("n3")
	c.settle(0)
	c.wantRound(t, 2, "n1 n2 n3 n4", 0, "more nodes have come: 2")

	// The rest goes on at once, with the spare.
	c.die("n1")
	c.die("n3")
	c.settle(0)
	c.again("n4", "n2")
	c.settle(0)
	c.wantRound(t, 3, "n2 n4 n5", 0, "n1 is lost")
}

func TestScaleUp(t *testing.T) {
	for scale, want := range map[rendezvous.ScaleUp][2]string{
		rendezvous.ScaleImmediate: {"n1 n2 n3", "n1 n2 n3"},
		rendezvous.ScaleOnRestart: {"n1 n2", "n1 n2 n3"},
		rendezvous.ScaleNever:     {"n1 n2", "n1 n2"},
	} {
		c := newCluster(2, 4, 1)
		c.s.ScaleUp = scale
		c.come(-1)
		c.come(-1)
		c.settle(0)
		c.settle(waits)
		c.come(-1)
		c.settle(0)
		c.settle(waits) // the last call
		if c.s.Over != nil {
			c.again("n1", "n2")
		}
		c.settle(0)
		if got := keys(c.s.Last.Members); got != want[0] {
			t.Errorf("scale up %s: with a newcomer the round is %s, want %s", scale, got, want[0])
		}
		c.report("n1", &rendezvous.Failure{Death: death.Death{ExitCode: 1}})
		c.settle(0)
		for _, m := range c.s.Last.Members {
			c.again(m.Key)
		}
		c.settle(0)
		if got := keys(c.s.Last.Members); got != want[1] {
			t.Errorf("scale up %s: after a restart the round is %s, want %s", scale, got, want[1])
		}
	}
}

// TestBurst: newcomers that come during the last call for the first of them make one round.
func TestBurst(t *testing.T) {
	c := newCluster(2, 9, 1)
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.settle(30 * time.Second)
	for range 3 {
		c.come(-1)
		c.settle(0)
		wantReason(t, c.settle(0), fmt.Sprintf("round 1 is running with 2 of 2 to 9 nodes; ends for more in %v", time.Duration(30-10*(c.came-3))*time.Second))
		c.settle(10 * time.Second)
	}
	c.rejoin()
	c.settle(0)
	c.wantRound(t, 2, "n1 n2 n3 n4 n5", 0, "more nodes have come: 3")
}

func TestNodeRanks(t *testing.T) {
	c := newCluster(3, 4, 1)
	for _, rank := range []int{-1, 2, 0} {
		c.come(rank)
	}
	c.settle(0)
	c.settle(waits)
	c.wantRound(t, 1, "n3 n2 n1", 0, "")
	// As many as before: who stays keeps its rank, whatever the newcomers ask for.
	c.die("n2")
	c.come(0)
	c.settle(0)
	c.again("n1", "n3")
	wantReason(t, c.settle(0), "round 2: 2 of 3 to 4 nodes; n2 is gone; gives up in 10m0s") // n3 has rank 0
	c.come(1)
	c.settle(0)
	c.wantRound(t, 2, "n3 n5 n1", 0, "n2 is lost")
}

// TestTwoNodesAskForOneRank: the later one gets in when the other is gone, and disturbs nobody before.
func TestTwoNodesAskForOneRank(t *testing.T) {
	c := newCluster(2, 3, 1)
	c.come(1)
	c.come(1)
	wantReason(t, c.settle(waits/10), "round 1: 1 of 2 to 3 nodes; gives up in 10m0s")
	c.come(0)
	c.settle(0)
	c.settle(30 * time.Second)
	c.wantRound(t, 1, "n3 n1", 0, "")
	wantReason(t, c.settle(waits), "round 1 is running with 2 of 2 to 3 nodes")
	c.die("n1")
	c.settle(0)
	c.again("n3")
	c.settle(0)
	c.wantRound(t, 2, "n3 n2", 0, "n1 is lost")
}

func TestHowJobsEnd(t *testing.T) {
	first, second := &rendezvous.Failure{Death: death.Death{Host: "n2", Rank: 1, ExitCode: 3}}, &rendezvous.Failure{Death: death.Death{ExitCode: 4}}
	final := &rendezvous.Failure{Death: death.Death{ExitCode: 5}, Final: true}
	for _, test := range []struct {
		name string
		do   func(*cluster)
		want rendezvous.Outcome
	}{
		{"success", func(c *cluster) { c.report("n1", nil); c.report("n2", nil) }, rendezvous.Outcome{}},
		{"success, then lost", func(c *cluster) { c.report("n1", nil); c.die("n1"); c.settle(0); c.report("n2", nil) }, rendezvous.Outcome{}},
		{"final", func(c *cluster) { c.report("n1", final) }, rendezvous.Outcome{Code: 5, Failure: final}},
		{"final, then lost", func(c *cluster) { c.report("n1", final); c.die("n1") }, rendezvous.Outcome{Code: 5, Failure: final, Lost: true}},
		{"final, though another was first", func(c *cluster) { c.report("n1", first); c.report("n2", final) }, rendezvous.Outcome{Code: 5, Failure: final}},
		{"final, when the round was already over", func(c *cluster) {
			c.report("n1", first)
			c.settle(0)
			c.report("n2", final)
			c.again("n1", "n2")
		}, rendezvous.Outcome{Code: 5, Failure: final}},
		{"first of two", func(c *cluster) {
			c.report("n1", &rendezvous.Failure{})
			c.settle(0)
			c.again("n1", "n2")
			c.settle(0)
			c.report("n2", first)
			c.report("n1", second)
			c.settle(0)
			c.settle(time.Second)
		}, rendezvous.Outcome{Code: 3, Failure: first}},
		{"too few", func(c *cluster) { c.die("n1"); c.settle(0); c.again("n2"); c.settle(0); c.settle(10 * time.Minute) },
			rendezvous.Outcome{Code: 75, Reason: "not enough nodes: round 2: 1 of 2 nodes after 10m0s; n1 is gone"}},
		{"left for a reason", func(c *cluster) {
			c.leave("n1", rendezvous.Outcome{Code: 126, Reason: "exec format error"})
		}, rendezvous.Outcome{Code: 126, Reason: "n1 has left: exec format error"}},
		{"left between two rounds", func(c *cluster) {
			c.report("n2", &rendezvous.Failure{})
			c.settle(0)
			c.again("n2")
			c.leave("n1", rendezvous.Outcome{Code: 143, Reason: "stopped"})
		}, rendezvous.Outcome{Code: 143, Reason: "n1 has left: stopped"}},
	} {
		c := newCluster(2, 2, 1)
		c.come(-1)
		c.come(-1)
		c.settle(0)
		test.do(c)
		c.settle(0)
		if c.closed == nil || !reflect.DeepEqual(*c.closed, test.want) {
			t.Errorf("%s: closed: %+v, want %+v", test.name, c.closed, test.want)
		}
	}
}

// TestLeaving: a member that says that it leaves is not waited for, nor is what others make of it a failure.
func TestLeaving(t *testing.T) {
	leaves := func(c *cluster) {
		c.s.Reports = append(c.s.Reports, rendezvous.Report{Key: "n1", Left: &rendezvous.Outcome{Code: 143, Reason: "stopped"}})
	}
	fails := func(c *cluster) { c.report("n2", &rendezvous.Failure{Death: death.Death{Host: "b", ExitCode: 1}}) }
	for name, events := range map[string][]func(*cluster){
		"it says so":         {leaves},
		"then others fail":   {leaves, fails},
		"others fail before": {fails, leaves},
	} {
		c := newCluster(2, 3, 0)
		for range 3 {
			c.come(-1)
		}
		c.settle(0)
		for _, event := range events {
			event(c)
		}
		c.settle(0)
		c.again("n2", "n3") // and n1 is still ending its workers
		c.settle(0)
		if c.closed != nil {
			t.Fatalf("%s: the job has ended: %+v", name, *c.closed)
		}
		c.wantRound(t, 2, "n2 n3", 0, "n1 has left: stopped")
	}
}

func TestSettingsConflict(t *testing.T) {
	mine := rendezvous.Settings{"nnodes": "2:4", "version": "1.0", "same": "x", "odd": "a, b"}
	theirs := rendezvous.Settings{"nnodes": "4:4", "same": "x", "odd": ""}
	err := mine.Conflict(theirs, "b")
	want := `the nodes of a job need the same settings; this node: nnodes 2:4, odd "a, b", version 1.0; the job: nnodes 4:4, odd "", version not set (set by b)`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := mine.Conflict(maps.Clone(mine), "b"); err != nil {
		t.Error(err)
	}
}

// TestRestart: somebody who wants another round gets it with the same nodes. It costs nothing, and a failure that is known goes first.
func TestRestart(t *testing.T) {
	for _, maxRestarts := range []int{0, 1} {
		c := newCluster(2, 2, maxRestarts)
		a, b := c.come(0), c.come(1)
		c.settle(0)
		c.s.Reports = append(c.s.Reports, rendezvous.Report{Key: b, Restart: "gorun restart"}, rendezvous.Report{Key: "stranger", Restart: "other"})
		d := rendezvous.Form(c.s)
		if d.Over == nil || d.Over.Why != "gorun restart" || d.Over.Restarts != 0 || d.Over.Failure != nil {
			t.Fatalf("%+v", d)
		}
		c.s.Reports = append(c.s.Reports, rendezvous.Report{Key: a, Failure: &rendezvous.Failure{Death: death.Death{ExitCode: 3}, Final: true}})
		if d := rendezvous.Form(c.s); d.Close == nil || d.Close.Code != 3 {
			t.Errorf("after a failure for good: %+v", d)
		}
	}
	c := newCluster(2, 2, 0)
	c.come(0)
	c.come(1)
	c.settle(0)
	c.s.Reports = []rendezvous.Report{{Key: "stranger", Restart: "other"}}
	if d := rendezvous.Form(c.s); d.Over != nil {
		t.Errorf("somebody who is not in the round has ended it: %+v", d.Over)
	}
}

// TestFewerNodes: a round with more nodes than the job may have now is over. The first ones go on; the others wait.
func TestFewerNodes(t *testing.T) {
	for _, up := range []rendezvous.ScaleUp{rendezvous.ScaleImmediate, rendezvous.ScaleOnRestart, rendezvous.ScaleNever} {
		c := newCluster(1, 4, 0)
		c.s.ScaleUp = up
		a, b, d := c.come(0), c.come(1), c.come(2)
		c.settle(0)
		c.settle(waits)
		c.s.Max = 2
		if over := rendezvous.Form(c.s).Over; over == nil || over.Why != "the job has at most 2 nodes now" || over.Restarts != 0 {
			t.Fatalf("%+v", over)
		}
		c.settle(0)
		c.again(a, b, d)
		c.settle(0)
		c.settle(waits)
		c.wantRound(t, 2, "n1 n2", 0, "the job has at most 2 nodes now")
	}
}

// TestFewerNodesThanNeeded: a round with fewer nodes than the job needs now goes on until there are enough for another one.
func TestFewerNodesThanNeeded(t *testing.T) {
	c := newCluster(1, 2, 0)
	c.come(0)
	c.settle(0)
	c.settle(waits)
	c.s.Min, c.s.Max = 4, 5
	b := c.come(1)
	wantReason(t, c.settle(waits), "round 1 is running with 1 of 4 to 5 nodes; too few wait for another round: 1")
	d := c.come(2)
	c.come(3)
	c.s.Unreachable = []rendezvous.Unreachable{{From: b, To: d}}
	wantReason(t, c.settle(waits), "round 1 is running with 1 of 4 to 5 nodes; too few wait for another round: 3")
	c.s.Unreachable = nil
	wantReason(t, c.settle(0), "round 1 is running with 1 of 4 to 5 nodes; ends for more in 30s")
	c.settle(30 * time.Second)
	c.rejoin()
	c.settle(0)
	c.settle(waits)
	c.wantRound(t, 2, "n1 n2 n3 n4", 0, "more nodes have come: 3")
}
