package rendezvous_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestAbsentMemberMayBeTheCause: a leader that has just been cut off does not know whether an absent member is gone. Until it does,
// a failure of another node neither costs a restart nor ends the job, even if a newcomer takes the place of the absent one.
func TestAbsentMemberMayBeTheCause(t *testing.T) {
	killed := failure(0, 1)
	killed.ExitCode = -9
	for name, failures := range map[string][]*rendezvous.Failure{
		"no peer is named":             {failure(0, 1)},
		"the absent one is named":      {follower(0, 1, 0)},
		"one that is here is named":    {follower(0, 2, 0)},
		"a rank that nobody has":       {follower(0, 7, 7)},
		"it was killed":                {killed},
		"one because of another":       {follower(0, 2, 0), follower(2, 1, 2)},
		"each because of the other":    {follower(0, 2, 0), follower(2, 0, 2)},
		"both because of the absent":   {follower(2, 1, 2), follower(0, 1, 0)},
		"one, and another by accident": {follower(2, 1, 2), failure(0, 1)},
	} {
		for restarts := range 2 {
			begin := func() *cluster {
				c := started(2, 3, restarts, 3)
				c.s.Settled = false
				c.die("n2")
				for _, f := range failures {
					c.report("n"+string(rune('1'+f.Rank)), f)
				}
				c.settle(0)
				c.settle(20 * time.Second)
				if c.closed != nil || (c.s.Over != nil) != (restarts == 1) {
					t.Fatalf("%s, %d restarts: the job is closed: %+v; the round is over: %+v", name, restarts, c.closed, c.s.Over)
				}
				if c.s.Over != nil {
					c.again("n1", "n3")
				}
				c.come(-1)
				c.settle(0)
				d := c.settle(waits)
				if c.closed != nil || c.s.Last.ID != 1 || !strings.Contains(d.Wait, "n2 may be gone") {
					t.Fatalf("%s, %d restarts: closed %+v, round %d, it waits for %+v", name, restarts, c.closed, c.s.Last.ID, d)
				}
				return c
			}

			c := begin()
			c.s.Settled = true
			c.settle(0)
			if restarts == 0 {
				c.again("n1", "n3")
			}
			c.settle(0)
			c.wantRound(t, 2, "n1 n4 n3", 0, "n2 is lost")

			c = begin()
			n2 := c.s.Last.Members[1]
			n2.Try++
			c.s.Nodes = append(c.s.Nodes, n2)
			c.settle(0)
			if restarts == 1 && (c.closed != nil || c.s.Last.ID != 2 || c.s.Last.Restarts != 1) {
				t.Errorf("%s: n2 is back; closed %+v, round %+v", name, c.closed, c.s.Last)
			}
			if restarts == 0 && (c.closed == nil || !slices.Contains(failures, c.closed.Failure)) {
				t.Errorf("%s: n2 is back, and no restart is left: the job is closed: %+v", name, c.closed)
			}
		}
	}
}

// TestNobodyIsWaitedFor who cannot be the cause, or is gone for certain.
func TestNobodyIsWaitedFor(t *testing.T) {
	stopped := rendezvous.Outcome{Code: 143, Reason: "SIGTERM"}
	for name, test := range map[string]struct {
		happens  func(*cluster)
		restarts int
	}{
		"all are here":               {func(*cluster) {}, 1},
		"it has done its work":       {func(c *cluster) { c.report("n2", nil); c.die("n2") }, 1},
		"it was not in the round":    {func(c *cluster) { c.come(-1); c.die("n4") }, 1},
		"it has left":                {func(c *cluster) { c.leave("n2", rendezvous.Outcome{}) }, 0},
		"it has left for a reason":   {func(c *cluster) { c.leave("n2", stopped) }, 0},
		"it leaves, and still stops": {func(c *cluster) { c.s.Reports = append(c.s.Reports, rendezvous.Report{Key: "n2", Left: &stopped}) }, 0},
	} {
		c := started(1, 3, 1, 3)
		c.s.Settled = false
		test.happens(c)
		c.report("n1", failure(0, 1))
		c.settle(0)
		c.rejoin()
		c.settle(0)
		c.settle(30 * time.Second)
		if c.closed != nil || c.s.Last.ID != 2 || c.s.Last.Restarts != test.restarts {
			t.Errorf("%s: closed %+v, round %d, %d restarts, want %d", name, c.closed, c.s.Last.ID, c.s.Last.Restarts, test.restarts)
		}
	}
}

// TestUnsettledLeaderComesToTheSame: what happens in a round costs the same whether or not the leader was settled meanwhile.
func TestUnsettledLeaderComesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, restarts := rapid.IntRange(2, 4).Draw(t, "nodes"), rapid.IntRange(0, 1).Draw(t, "restarts")
		both := [2]*cluster{started(1, 4, restarts, size), started(1, 4, restarts, size)}
		both[1].s.Settled = false
		here := slices.Clone(both[0].s.Last.Members[1:]) // the first one stays
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			var event func(*cluster)
			rank := rapid.IntRange(0, size-1).Draw(t, "rank")
			key := both[0].s.Last.Members[rank].Key
			present := rank == 0 || slices.ContainsFunc(here, func(m rendezvous.Candidate) bool { return m.Key == key })
			switch kind := rapid.SampledFrom([]string{"die", "leave", "fail", "fail", "succeed", "come"}).Draw(t, "event"); {
			case kind == "come":
				event = func(c *cluster) { c.come(-1) }
			case !present:
				continue
			case kind == "succeed":
				event = func(c *cluster) { c.report(key, nil) }
			case kind == "fail":
				f := failure(rank, 1)
				f.ExitCode = rapid.SampledFrom([]int{1, -6, -9}).Draw(t, "exit code")
				if rapid.Bool().Draw(t, "follows") {
					f.FailedPeer = &death.Peer{Rank: rapid.IntRange(-1, 4).Draw(t, "because of"), Finder: rank}
				}
				event = func(c *cluster) { c.report(key, f) }
			case rank > 0:
				here = slices.DeleteFunc(here, func(m rendezvous.Candidate) bool { return m.Key == key })
				event = func(c *cluster) { c.die(key) }
				if kind == "leave" {
					event = func(c *cluster) { c.leave(key, rendezvous.Outcome{}) }
				}
			default:
				continue
			}
			for _, c := range both {
				event(c)
				c.settle(0)
			}
		}
		for _, c := range both {
			c.s.Settled = true
			c.settle(0)
			c.rejoin()
			c.settle(0)
			c.settle(waits)
		}
		a, b := both[0], both[1]
		if (a.closed == nil) != (b.closed == nil) || a.closed != nil && *a.closed != *b.closed || a.s.Last.Restarts != b.s.Last.Restarts {
			t.Fatalf("closed: %+v and %+v; restarts: %d and %d", a.closed, b.closed, a.s.Last.Restarts, b.s.Last.Restarts)
		}
	})
}
