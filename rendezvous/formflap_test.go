package rendezvous_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// flapping has a node of host x come until it is in a round, and be lost at once. It returns how long that took.
func (c *cluster) flapping() (took time.Duration) {
	key := c.comeFrom("x", -1)
	for ; c.s.Over != nil || c.s.Last == nil || !c.member(key); took += time.Second {
		c.rejoin()
		c.settle(time.Second)
	}
	c.die(key)
	c.settle(0)
	c.rejoin()
	c.settle(0)
	return took
}

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

func TestFlappingHost(t *testing.T) {
	c := newCluster(2, 4, 0)
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.settle(30 * time.Second)
	for i, want := range []time.Duration{0, 0, 0, 30, 60, 120, 240, 480, 480} { // seconds beside the last call
		took := c.flapping() - 30*time.Second
		if took < want*time.Second || took > (want+2)*time.Second {
			t.Errorf("after %d losses host x is let in after %v, want %v s", i, took, want)
		}
	}

	// It is told why it waits, and another node gets in meanwhile.
	c.comeFrom("x", -1)
	wantReason(t, c.settle(time.Second), "round 19 is running with 2 of 2 to 4 nodes; host x was lost 9 times in a row; it is let in again in 7m59s")
	c.come(-1)
	c.settle(0)
	c.settle(30 * time.Second)
	c.rejoin()
	c.settle(0)
	if got := len(c.s.Last.Members); got != 3 || c.s.Over != nil {
		t.Errorf("with a newcomer there are %d members, over: %+v", got, c.s.Over)
	}
	// Without it there would be too few.
	c.die("n2")
	c.die("n1")
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if got := c.s.Last.Members; len(got) != 2 || got[1].Node.Host != "x" {
		t.Errorf("the round is %s", keys(got))
	}
	// A host that stays for a while has paid.
	c.settle(time.Hour)
	c.die(c.s.Last.Members[1].Key)
	c.come(-1)
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if len(c.s.Last.Flaps) != 0 {
		t.Errorf("on record are %+v", c.s.Last.Flaps)
	}
}

// TestRestartsAreNoFlaps: hosts are held responsible for going soon after they have come, and for nothing else.
func TestRestartsAreNoFlaps(t *testing.T) {
	c := newCluster(1, 3, 20)
	a, b := c.come(-1), c.come(-1)
	c.settle(0)
	c.settle(30 * time.Second)
	for range 5 {
		c.report(a, &rendezvous.Failure{Death: death.Death{ExitCode: 1}})
		c.settle(0)
		c.again(a, b)
		c.settle(0)
	}
	for range 5 {
		x := c.comeFrom("x", -1)
		c.settle(0)
		c.rejoin()
		c.settle(0)
		if !c.member(x) {
			t.Fatalf("x is not in round %d", c.s.Last.ID)
		}
		c.settle(time.Hour)
		c.leave(x, rendezvous.Outcome{Code: 143, Reason: "stopped"})
		c.settle(0)
		c.rejoin()
		c.settle(0)
	}
	if c.closed != nil || len(c.s.Last.Flaps) != 0 || c.s.Last.Why != "n7 on x has left: stopped" {
		t.Errorf("%+v; on record are %+v, and %q", c.closed, c.s.Last.Flaps, c.s.Last.Why)
	}
}

// TestWhoLeavesEarlyFlaps, in whatever way: it waits longer and longer, and the others pay nothing.
func TestWhoLeavesEarlyFlaps(t *testing.T) {
	for what, leave := range map[string]func(c *cluster, key string){
		"its program cannot be started": func(c *cluster, key string) { c.leave(key, rendezvous.Outcome{Code: 127, Reason: "no such file"}) },
		"it cannot reach rank 0":        func(c *cluster, key string) { c.withdraw(key); c.settle(0); c.die(key) },
		"it joins again and again":      func(c *cluster, key string) { c.again(key); c.settle(0); c.die(key) },
		"it is lost":                    func(c *cluster, key string) { c.die(key) },
	} {
		c := newCluster(2, 4, 0)
		c.come(-1)
		c.come(-1)
		c.settle(0)
		c.settle(30 * time.Second)
		var took []time.Duration
		for range 6 {
			key := c.comeFrom("x", -1)
			passed := time.Duration(0)
			for ; c.s.Over != nil || !c.member(key); passed += time.Second {
				c.rejoin()
				c.settle(time.Second)
			}
			took = append(took, (passed-30*time.Second).Round(10*time.Second)/time.Second)
			leave(c, key)
			c.settle(0)
			c.rejoin()
			c.settle(0)
		}
		if want := []time.Duration{0, 0, 0, 30, 60, 120}; !slices.Equal(took, want) {
			t.Errorf("%s: beside the last call it waits for %d s, want %d", what, took, want)
		}
		if c.closed != nil || c.s.Last.Restarts != 0 {
			t.Errorf("%s: closed: %+v, %d restarts", what, c.closed, c.s.Last.Restarts)
		}
	}
}

// TestNewcomersOfManyHosts that do not stay: each has another name, as pods have.
func TestNewcomersOfManyHosts(t *testing.T) {
	c := newCluster(2, 4, 0)
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.settle(30 * time.Second)
	for n := range 9 {
		key := c.come(-1)
		c.settle(0)
		c.settle(30 * time.Second)
		c.rejoin()
		c.settle(0)
		if !c.member(key) {
			t.Fatalf("newcomer number %d is not let in", n+1)
		}
		c.leave(key, rendezvous.Outcome{Code: 127, Reason: "no such file"})
		c.settle(0)
		c.rejoin()
		c.settle(0)
	}
	c.come(-1)
	wantReason(t, c.settle(0), "round 19 is running with 2 of 2 to 4 nodes; 9 newcomers in a row did not stay; others are let in again in 30s")
	c.settle(30 * time.Second)
	c.settle(30 * time.Second)
	c.rejoin()
	c.settle(0)
	c.wantRound(t, 20, "n1 n2 n12", 0, "more nodes have come: 1")
}

// TestNewcomersThatAreNeeded and do not stay: the job waits for a better one, and that has a limit.
func TestNewcomersThatAreNeeded(t *testing.T) {
	c := newCluster(2, 2, 2)
	c.come(-1)
	c.come(-1)
	c.settle(0)
	c.settle(time.Hour)
	c.die("n2")
	c.settle(0)
	c.rejoin()
	c.settle(0)
	for n := range 10 {
		key := c.come(-1)
		c.settle(0)
		if want := max(0, n-8); c.closed != nil || !c.member(key) || c.s.Last.Restarts != want {
			t.Fatalf("with newcomer number %d round %d has %d restarts, want %d; closed: %+v", n+1, c.s.Last.ID, c.s.Last.Restarts, want, c.closed)
		}
		c.leave(key, rendezvous.Outcome{Code: 127, Reason: "no such file"})
		c.settle(0)
		c.rejoin()
		c.settle(0)
	}
	if want := "n12 has left: no such file; it is the newcomer number 10 in a row that did not stay; restart 2 of 2"; c.s.Over == nil || c.s.Over.Why != want {
		t.Errorf("the round is over: %+v, want %s", c.s.Over, want)
	}
	last := c.come(-1)
	c.settle(0)
	c.leave(last, rendezvous.Outcome{Code: 127, Reason: "no such file"})
	c.settle(0)
	if want := (rendezvous.Outcome{Code: 127, Reason: "n13 has left: no such file; it is the newcomer number 11 in a row that did not stay"}); c.closed == nil || *c.closed != want {
		t.Errorf("closed: %+v, want %+v", c.closed, want)
	}
}

// TestOneLossOfManyHosts is no sign of anything, and not all are on record.
func TestOneLossOfManyHosts(t *testing.T) {
	c := newCluster(1, 300, 0)
	for range 300 {
		c.come(-1)
	}
	c.settle(0)
	for i := range 299 {
		c.die(fmt.Sprint("n", i+1))
	}
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if got := len(c.s.Last.Flaps); got != 64 {
		t.Errorf("%d hosts are on record, want 64", got)
	}
	c.settle(time.Hour)
	for range 299 {
		c.come(-1)
	}
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if got := len(c.s.Last.Members); got != 300 || len(c.s.Last.Flaps) != 0 {
		t.Errorf("%d nodes, and %d hosts on record", got, len(c.s.Last.Flaps))
	}
}

// TestFlapProperties has nodes of two hosts come and go, with nothing else happening.
func TestFlapProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(rapid.IntRange(1, 2).Draw(t, "min"), 4, 0)
		c.come(-1)
		c.come(-1)
		c.settle(0)
		c.settle(30 * time.Second)
		step := func(t *rapid.T, do func()) {
			before, rounds := c.s, len(c.formed)
			do()
			c.settle(rapid.SampledFrom([]time.Duration{0, time.Second, 30 * time.Second, 2 * time.Minute}).Draw(t, "passed"))
			c.rejoin()
			c.settle(0)
			if c.closed != nil {
				t.Fatalf("closed: %+v", *c.closed)
			}
			for _, f := range c.formed[rounds:] {
				checkFlaps(t, before, f)
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

// checkFlaps holds what is on record with f against what was before. Nobody gets in who is to wait, unless there would
// be too few.
func checkFlaps(t *rapid.T, s rendezvous.State, f rendezvous.Formed) {
	before := make(map[string]int)
	old := make(map[string]bool)
	if s.Last != nil {
		for _, flap := range s.Last.Flaps {
			before[flap.Host] = flap.Losses
		}
		for _, m := range s.Last.Members {
			old[m.Key] = true
		}
	}
	waits := make(map[string]bool)
	for i, flap := range f.Flaps {
		if flap.Losses < 1 || flap.Losses > before[flap.Host]+1 || flap.Since < 0 || waits[flap.Host] || i > 0 && flap.Losses > f.Flaps[i-1].Losses {
			t.Fatalf("on record are %+v, after %v", f.Flaps, before)
		}
		free := 2
		if flap.Host == "" { // of all newcomers together
			free = 8
		}
		waits[flap.Host] = flap.Losses > free && flap.Since < s.LastCall<<min(flap.Losses-free-1, 4)
	}
	for _, m := range f.Members {
		if (waits[m.Node.Host] || waits[""]) && !old[m.Key] && len(f.Members) > s.Min {
			t.Fatalf("%s gets in, of %d: %+v", m.Key, len(f.Members), f.Flaps)
		}
	}
}

// TestUnfitNewcomer: a newcomer whose worker asks for no restart does not end a job that ran without it, and costs no restart. A member from
// the beginning ends it, and so does a newcomer that has stayed for long.
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
