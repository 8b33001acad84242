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

// TestLastFailure is not believed at once, unless it can be no other's fault.
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
