package rendezvous_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// member reports whether the node is in the last round.
func (c *cluster) member(key string) bool {
	for _, m := range c.s.Last.Members {
		if m.Key == key {
			return true
		}
	}
	return false
}

// rejoin has all join again whose round is over.
func (c *cluster) rejoin() {
	for _, n := range c.s.Nodes {
		if c.s.Over != nil && c.member(n.Key) {
			c.again(n.Key)
		}
	}
}

// visit has a node of host x come, waits until it is in a round, and has it go. It returns for how many seconds the
// node was kept out.
func (c *cluster) visit(leave func(c *cluster, key string)) time.Duration {
	key := c.comeFrom("x", -1)
	took := time.Duration(0)
	for ; c.s.Over != nil || !c.member(key); took += time.Second {
		c.rejoin()
		c.settle(time.Second)
	}
	leave(c, key)
	c.settle(0)
	c.rejoin()
	c.settle(0)
	return max(0, took-c.s.LastCall).Round(10*time.Second) / time.Second
}

// pair is a job of two to four nodes that runs with two, for so long that these are no newcomers.
func pair() *cluster {
	c := newCluster(2, 4, 0)
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.settle(c.s.LastCall)
	return c
}

func lose(c *cluster, key string) { c.die(key) }

// TestKeptOut: a host whose nodes do not stay is kept out for longer and longer, however they go and however short
// the last call is. The others pay nothing.
func TestKeptOut(t *testing.T) {
	for what, leave := range map[string]func(c *cluster, key string){
		"its program cannot be started": func(c *cluster, key string) { c.leave(key, rendezvous.Outcome{Code: 127, Reason: "no such file"}) },
		"it cannot reach rank 0":        func(c *cluster, key string) { c.withdraw(key); c.settle(0); c.die(key) },
		"it joins again":                func(c *cluster, key string) { c.again(key); c.settle(0); c.die(key) },
		"it is lost":                    lose,
		"others cannot reach it":        func(c *cluster, key string) { c.cut("n1>" + key); c.settle(0); c.die(key); c.mend() },
	} {
		for _, lastCall := range []time.Duration{time.Second, 30 * time.Second} {
			c := pair()
			c.s.LastCall = lastCall
			var took []time.Duration
			for range 8 {
				took = append(took, c.visit(leave))
			}
			if want := []time.Duration{0, 30, 60, 120, 240, 480, 600, 600}; !slices.Equal(took, want) {
				t.Errorf("%s, last call %v: host x is kept out for %d s, want %d", what, lastCall, took, want)
			}
			if c.closed != nil || c.s.Last.Restarts != 0 {
				t.Errorf("%s: closed: %+v, %d restarts", what, c.closed, c.s.Last.Restarts)
			}
		}
	}
}

// TestOthersGetInMeanwhile: people are told which host is kept out. That does not hold up other nodes.
func TestOthersGetInMeanwhile(t *testing.T) {
	c := pair()
	c.visit(lose)
	x := c.comeFrom("x", -1)
	wantReason(t, c.settle(time.Second),
		"round 3 is running with 2 of 2 to 4 nodes; host x is kept out, as its node did not stay; host x is let in again in 29s")
	other := c.come(-1)
	c.settle(0)
	c.settle(c.s.LastCall - 2*time.Second)
	wantReason(t, c.settle(0), "round 3 is running with 2 of 2 to 4 nodes; ends for more in 2s")
	c.s.Max = 3
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if !c.member(other) || c.member(x) {
		t.Errorf("the round is %s", keys(c.s.Last.Members))
	}
}

// TestKeptOutThoughNeeded: a job with too few nodes waits until the host is let in, or until its own time is up.
func TestKeptOutThoughNeeded(t *testing.T) {
	begin := func() *cluster {
		c := newCluster(2, 2, 0)
		c.come(-1)
		c.come(-1)
		c.settle(0)
		c.die("n2") // which did not join a job that ran
		c.settle(0)
		c.rejoin()
		c.visit(lose)
		c.comeFrom("x", -1)
		return c
	}
	c := begin()
	wantReason(t, c.settle(0), "round 3: 2 of 2 nodes; n3 on x is gone; host x is kept out, as its node did not stay; host x is let in again in 30s")
	c.settle(29 * time.Second)
	if c.s.Last.ID != 2 {
		t.Errorf("round %d has formed", c.s.Last.ID)
	}
	c.settle(time.Second)
	c.wantRound(t, 3, "n1 n4", 0, "n3 on x is lost")

	c = begin()
	c.s.JoinTimeout = 20 * time.Second
	c.settle(0)
	c.settle(20 * time.Second)
	want := rendezvous.Outcome{Code: 75, Reason: "not enough nodes: round 3: 2 of 2 nodes after 20s; n3 on x is gone; host x is kept out, as its node did not stay"}
	if c.closed == nil || *c.closed != want {
		t.Errorf("closed: %+v, want %+v", c.closed, want)
	}
}

// TestWhoIsNotKeptOut: hosts are kept out for nodes that have joined a job and gone within a minute, and for nothing
// else.
func TestWhoIsNotKeptOut(t *testing.T) {
	stays := func(c *cluster, key string) { c.settle(time.Minute); c.die(key) }
	for what, visits := range map[string][]func(c *cluster, key string){
		"it stays each time":             {stays, stays, stays},
		"it stays for several rounds":    {func(c *cluster, key string) { c.restart(40 * time.Second); c.settle(20 * time.Second); c.die(key) }},
		"it has done its work":           {func(c *cluster, key string) { c.report(key, nil); c.settle(0); c.die(key) }},
		"its workers fail, and it stays": {func(c *cluster, key string) { c.restart(0); stays(c, key) }},
	} {
		c := pair()
		for i, leave := range visits {
			if took := c.visit(leave); took != 0 {
				t.Errorf("%s: at visit %d host x is kept out for %d s", what, i+1, took)
			}
		}
		if c.closed != nil || len(c.s.Last.Losses) != 0 {
			t.Errorf("%s: closed %+v; on record are %+v", what, c.closed, c.s.Last.Losses)
		}
	}

	// It begins anew when a node has stayed, and when the last one is long ago.
	for what, pays := range map[string]func(*cluster){
		"it has stayed":   func(c *cluster) { c.visit(stays) },
		"it has not come": func(c *cluster) { c.settle(time.Hour) },
	} {
		c := pair()
		c.visit(lose)
		c.visit(lose)
		pays(c)
		if took := []time.Duration{c.visit(lose), c.visit(lose)}; took[1] != 30 {
			t.Errorf("%s: then host x is kept out for %d s", what, took)
		}
	}

	// Members from the beginning have not joined a job that ran.
	c := newCluster(1, 3, 0)
	for range 3 {
		c.comeFrom("x", -1)
	}
	c.settle(0)
	c.die("n1")
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if c.s.Last.ID != 2 || len(c.s.Last.Losses) != 0 {
		t.Errorf("round %d; on record are %+v", c.s.Last.ID, c.s.Last.Losses)
	}
}

// restart has a worker fail after some time, and the next round form.
func (c *cluster) restart(after time.Duration) {
	c.s.MaxRestarts++
	c.settle(after)
	c.report("n1", &rendezvous.Failure{Death: death.Death{ExitCode: 1}})
	c.settle(0)
	c.rejoin()
	c.settle(0)
}

// TestNewcomersThatVanish: a host is kept out as well if a round ends for its node, which is gone before the next one
// forms.
func TestNewcomersThatVanish(t *testing.T) {
	c := pair()
	vanish := func() {
		key := c.comeFrom("x", -1)
		for c.s.Over == nil {
			c.settle(time.Second)
		}
		c.die(key)
		c.rejoin()
		c.settle(0)
	}
	vanish()
	c.wantRound(t, 2, "n1 n2", 0, "more nodes have come: 1")
	if took := c.visit(lose); took != 30 {
		t.Errorf("host x is kept out for %d s", took)
	}
}

// TestKeptOutByANewLeader, which does not know when the round ended: for as long again, and no longer.
func TestKeptOutByANewLeader(t *testing.T) {
	c := pair()
	c.visit(func(c *cluster, key string) { c.settle(40 * time.Second); c.die(key); c.die("n2") })
	c.comeFrom("x", -1)
	c.settle(20 * time.Second)
	c.s.Age = 0
	c.settle(29 * time.Second)
	if c.s.Over == nil {
		t.Fatalf("round %d has formed", c.s.Last.ID)
	}
	c.settle(time.Second)
	c.wantRound(t, 3, "n1 n4", 0, "n2 is lost")
}

// TestLossesAreLimited: not all hosts are on record if very many are lost at once.
func TestLossesAreLimited(t *testing.T) {
	c := newCluster(1, 300, 0)
	c.come(-1)
	c.settle(0)
	c.settle(c.s.LastCall)
	for range 299 {
		c.come(-1)
	}
	c.settle(0)
	c.rejoin()
	c.settle(0)
	for _, m := range c.s.Last.Members[1:] {
		c.die(m.Key)
	}
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if got := len(c.s.Last.Losses); got != 64 {
		t.Errorf("%d hosts are on record, want 64", got)
	}
}

// TestKeptOutProperties has nodes of two hosts come and go, with nothing else happening.
func TestKeptOutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(rapid.IntRange(1, 3).Draw(t, "min"), 4, 0)
		c.s.JoinTimeout = waits
		c.come(-1)
		c.come(-1)
		c.comeFrom("x", -1)
		c.settle(0)
		c.settle(30 * time.Second)
		step := func(t *rapid.T, do func()) {
			before, rounds := c.s, len(c.formed)
			do()
			c.settle(rapid.SampledFrom([]time.Duration{0, time.Second, 30 * time.Second, 2 * time.Minute}).Draw(t, "passed"))
			c.rejoin()
			c.settle(0)
			if c.closed != nil {
				t.Skip("closed")
			}
			for _, f := range c.formed[rounds:] {
				checkKeptOut(t, before, f)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				step(t, func() { c.comeFrom(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "host"), -1) })
			},
			"pass": func(t *rapid.T) { step(t, func() {}) },
			"die": func(t *rapid.T) {
				if len(c.s.Nodes) > 2 {
					step(t, func() { c.die(rapid.SampledFrom(c.s.Nodes[2:]).Draw(t, "node").Key) })
				}
			},
		})
	})
}

// checkKeptOut holds what is on record with f against what was before. Nobody gets in who is to wait.
func checkKeptOut(t *rapid.T, s rendezvous.State, f rendezvous.Formed) {
	before := make(map[string]int)
	old := make(map[string]bool)
	if s.Last != nil {
		for _, l := range s.Last.Losses {
			before[l.Host] = l.Times
		}
		for _, m := range s.Last.Members {
			old[m.Key] = true
		}
	}
	waits := make(map[string]bool)
	for i, l := range f.Losses {
		if l.Times < 1 || l.Times > before[l.Host]+1 || l.Since < 0 || waits[l.Host] || i > 0 && l.Times > f.Losses[i-1].Times {
			t.Fatalf("on record are %+v, after %v", f.Losses, before)
		}
		waits[l.Host] = l.Since < min(30*time.Second<<(l.Times-1), 10*time.Minute)
	}
	for _, m := range f.Members {
		if waits[m.Node.Host] && !old[m.Key] {
			t.Fatalf("%s of %s gets in: %+v", m.Key, m.Node.Host, f.Losses)
		}
	}
}

// TestUnfitNewcomer: a newcomer whose worker asks for no restart does not end a job that ran without it, and costs no
// restart. A member from the beginning ends it, and so does a newcomer that has stayed for long.
func TestUnfitNewcomer(t *testing.T) {
	f := &rendezvous.Failure{Death: death.Death{Rank: 2, ExitCode: 2, Host: "c"}, Final: true}
	for name, c := range map[string]struct {
		who    string
		stayed time.Duration
		ends   bool
	}{
		"a newcomer":                  {"n3", 0, false},
		"a newcomer that has stayed":  {"n3", time.Hour, true},
		"a member from the beginning": {"n1", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(2, 3, 1)
			cl.come(-1)
			cl.come(-1)
			cl.settle(0)
			cl.settle(time.Hour)
			cl.come(-1)
			cl.settle(0)
			cl.rejoin()
			cl.settle(0)
			cl.s.Age = c.stayed
			cl.report(c.who, f)
			d := cl.settle(0)
			if ended := cl.closed != nil; ended != c.ends {
				t.Fatalf("closed: %+v; %+v", cl.closed, d)
			}
			if c.ends {
				return
			}
			if cl.s.Over == nil || cl.s.Over.Failure != f || cl.s.Over.Restarts != 0 {
				t.Fatalf("the round is over: %+v", cl.s.Over)
			}
			cl.leave(c.who, rendezvous.Outcome{Code: 2, Failure: f})
			cl.again("n1", "n2")
			cl.settle(0)
			cl.settle(time.Hour)
			if cl.closed != nil || cl.member(c.who) || cl.s.Last.ID != 3 || cl.s.Last.Restarts != 0 {
				t.Errorf("closed: %+v; round %d with %d restarts: %+v", cl.closed, cl.s.Last.ID, cl.s.Last.Restarts, cl.s.Last.Members)
			}
		})
	}
}
