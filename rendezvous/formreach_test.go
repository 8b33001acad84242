package rendezvous_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// cut has nodes unable to reach another: "n1>n2 n3>n2".
func (c *cluster) cut(pairs string) {
	for _, pair := range strings.Fields(pairs) {
		from, to, _ := strings.Cut(pair, ">")
		c.s.Unreachable = append(c.s.Unreachable, rendezvous.Unreachable{From: from, To: to, Addr: "10.0.0." + to[1:] + ":4711"})
	}
}

// mend has all reach each other.
func (c *cluster) mend() { c.s.Unreachable = nil }

// started is a cluster whose first round has all nodes.
func started(least, most, maxRestarts, nodes int) *cluster {
	c := newCluster(least, most, maxRestarts)
	for range nodes {
		c.come(-1)
	}
	c.settle(0)
	c.settle(30 * time.Second)
	return c
}

const advice = " (check the network and the firewalls between them, or --local-addr)"

// TestWhoIsLeftOut: of two nodes, the one that is apart from more others, or else the newer one.
func TestWhoIsLeftOut(t *testing.T) {
	for _, test := range []struct {
		nodes int
		cut   string
		stay  string
		why   string
	}{
		{3, "n1>n2", "n1 n3", "n1 cannot reach n2 at 10.0.0.2:4711; going on without n2 until they reach each other"},
		{3, "n2>n1", "n1 n3", "n2 cannot reach n1 at 10.0.0.1:4711; going on without n2 until they reach each other"},
		{3, "n2>n3 n3>n2", "n1 n2", "n2 cannot reach n3 at 10.0.0.3:4711; going on without n3 until they reach each other"},
		{3, "n2>n1 n3>n1", "n2 n3", "n2 cannot reach n1 at 10.0.0.1:4711; n3 cannot reach n1 at 10.0.0.1:4711; going on without n1 until they reach each other"},
		{3, "n1>n2 n1>n3", "n2 n3", "n1 cannot reach n2 at 10.0.0.2:4711; n1 cannot reach n3 at 10.0.0.3:4711; going on without n1 until they reach each other"},
		{4, "n1>n3 n1>n4 n2>n3 n2>n4", "n1 n2", "n1 cannot reach n3 at 10.0.0.3:4711; n1 cannot reach n4 at 10.0.0.4:4711; " +
			"n2 cannot reach n3 at 10.0.0.3:4711; and 1 more; going on without n3, n4 until they reach each other"},
		{5, "n2>n1 n2>n3 n3>n4 n5>n4", "n1 n3 n5", "n2 cannot reach n1 at 10.0.0.1:4711; n2 cannot reach n3 at 10.0.0.3:4711; " +
			"n3 cannot reach n4 at 10.0.0.4:4711; and 1 more; going on without n2, n4 until they reach each other"},
		{5, "n1>n3 n1>n4 n2>n3 n2>n5", "n3 n4 n5", "n1 cannot reach n3 at 10.0.0.3:4711; n1 cannot reach n4 at 10.0.0.4:4711; " +
			"n2 cannot reach n3 at 10.0.0.3:4711; and 1 more; going on without n1, n2 until they reach each other"},
	} {
		c := started(2, test.nodes, 0, test.nodes)
		c.cut(test.cut)
		c.settle(0)
		c.rejoin()
		c.settle(0)
		c.wantRound(t, 2, test.stay, 0, test.why+advice)
	}
}

// TestHigherRankIsLeftOut, though its node came first: both were there from the start.
func TestHigherRankIsLeftOut(t *testing.T) {
	c := newCluster(2, 3, 0)
	for rank := range 3 {
		c.come(2 - rank)
	}
	c.settle(0)
	c.cut("n3>n1")
	c.settle(0)
	c.rejoin()
	c.settle(0)
	c.wantRound(t, 2, "n3 n2", 0, "n3 cannot reach n1 at 10.0.0.1:4711; going on without n1 until they reach each other"+advice)
}

// TestManyAreApart: two halves of a large job lose each other.
func TestManyAreApart(t *testing.T) {
	const half = 20
	c := started(2, 2*half, 0, 2*half)
	var stay []string
	for i := range half {
		stay = append(stay, fmt.Sprint("n", i+1))
		for k := range half {
			c.cut(fmt.Sprintf("n%d>n%d", half+k+1, i+1))
		}
	}
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if got, want := keys(c.s.Last.Members), strings.Join(stay, " "); got != want || c.s.Last.ID != 2 {
		t.Errorf("round %d is %s, want %s", c.s.Last.ID, got, want)
	}
}

// TestApartAndBack: who was left out says why it waits, and is a newcomer when it can be reached.
func TestApartAndBack(t *testing.T) {
	c := started(2, 3, 0, 3)
	c.cut("n3>n1")
	c.settle(0)
	c.rejoin()
	wantReason(t, c.settle(waits), "round 2 is running with 2 of 2 to 3 nodes; n3 cannot reach n1 at 10.0.0.1:4711"+advice)
	c.mend()
	c.settle(0)
	c.rejoin()
	c.settle(0)
	c.wantRound(t, 3, "n1 n2 n3", 0, "more nodes have come: 1")
}

// TestApartAndBusy: a node that is left out while it still ends its workers is on record, too. So members go on to
// call it.
func TestApartAndBusy(t *testing.T) {
	c := started(2, 3, 1, 3)
	c.cut("n2>n3")
	c.settle(0)
	c.again("n1", "n2")
	c.settle(0)
	c.settle(30 * time.Second)
	c.wantRound(t, 2, "n1 n2", 0, "n2 cannot reach n3 at 10.0.0.3:4711; going on without n3 until they reach each other"+advice)
	wantApart := func() {
		t.Helper()
		if apart := c.s.Last.Apart; len(apart) != 1 || apart[0].Key != "n3" {
			t.Errorf("apart: %v", apart)
		}
	}
	wantApart()

	// To end its workers may take it longer than the next round lasts.
	c.report("n1", &rendezvous.Failure{Death: death.Death{Host: "n1", ExitCode: 1}})
	c.settle(0)
	c.again("n1", "n2")
	c.settle(0)
	if c.s.Last.ID != 3 {
		t.Fatalf("round %d is the last one", c.s.Last.ID)
	}
	wantApart()
}

// TestApartWithoutRoom: the job waits for both, which uses up no restart, and has an end.
func TestApartWithoutRoom(t *testing.T) {
	c := started(2, 2, 0, 2)
	c.cut("n1>n2 n2>n1")
	c.settle(0)
	c.rejoin()
	const what = "; n1 cannot reach n2 at 10.0.0.2:4711" + advice
	wantReason(t, c.settle(0), "round 2: 2 of 2 nodes"+what+"; gives up in 10m0s")
	c.settle(time.Minute)
	c.mend()
	c.settle(0)
	c.wantRound(t, 2, "n1 n2", 0, "n1 cannot reach n2 at 10.0.0.2:4711")
	c.cut("n1>n2 n2>n1")
	c.settle(0)
	c.rejoin()
	c.settle(0)
	c.settle(10 * time.Minute)
	if want := (rendezvous.Outcome{Code: 75, Reason: "not enough nodes reach each other: round 3: 2 of 2 nodes after 10m0s" + what}); c.closed == nil || *c.closed != want {
		t.Errorf("closed: %+v, want %+v", c.closed, want)
	}
}

// TestApartIsWhyOthersFail: the failures of workers that could not reach each other, and of those who needed them,
// are free of charge, whichever is told first.
func TestApartIsWhyOthersFail(t *testing.T) {
	other := &rendezvous.Failure{Death: death.Death{Host: "n3", Rank: 2, ExitCode: 1}}
	names := &rendezvous.Failure{Death: death.Death{Host: "n1", ExitCode: 1}, Unreachable: []rendezvous.Peer{{Rank: 1, Addr: "10.0.0.2:4711"}}}
	for _, restarts := range []int{0, 1} {
		c := started(2, 3, restarts, 3)
		c.report("n3", other)
		c.settle(0)
		c.settle(time.Second / 2)
		c.report("n1", names)
		c.settle(0)
		c.settle(9 * time.Second)
		c.cut("n1>n2")
		c.settle(0)
		c.rejoin()
		c.settle(0)
		c.wantRound(t, 2, "n1 n3", 0, "n1 cannot reach n2 at 10.0.0.2:4711; going on without n2 until they reach each other"+advice)
	}

	// A worker whose agent reaches the other one is like any other that fails.
	c := started(2, 3, 1, 3)
	c.report("n1", names)
	c.settle(0)
	c.rejoin()
	c.settle(0)
	c.wantRound(t, 2, "n1 n2 n3", 1, "rank 0 on n1: exit code 1; restart 1 of 1")
	c.report("n1", names)
	c.settle(0)
	c.settle(10 * time.Second)
	if c.closed == nil || c.closed.Failure != names {
		t.Errorf("closed: %+v", c.closed)
	}
}

// TestNewcomerAsRankZero that others cannot reach is left out, and they go on.
func TestNewcomerAsRankZero(t *testing.T) {
	for _, size := range []int{1, 2} {
		c := newCluster(1, size+1, 0)
		for range size {
			c.come(-1)
		}
		c.settle(0)
		c.settle(30 * time.Second)
		head := c.come(0)
		c.settle(0)
		c.rejoin()
		c.settle(0)
		if got := c.s.Last.Members[0].Key; got != head {
			t.Fatalf("rank 0 is %s", got)
		}
		c.cut("n1>" + head)
		c.settle(0)
		c.rejoin()
		c.settle(0)
		if got, want := keys(c.s.Last.Members), "n1 n2"[:3*size-1]; got != want || c.s.Over != nil || c.s.Last.Restarts != 0 {
			t.Errorf("the round is %s, want %s; over: %+v, closed: %+v", got, want, c.s.Over, c.closed)
		}
	}
}

// TestNewcomerApart from a member disturbs nobody, and takes no member's place when there is a new round for another
// reason.
func TestNewcomerApart(t *testing.T) {
	c := started(2, 4, 1, 2)
	a, b := c.come(-1), c.come(-1)
	c.cut(a + ">n2 " + b + ">n2")
	wantReason(t, c.settle(waits), "round 1 is running with 2 of 2 to 4 nodes; n3 cannot reach n2 at 10.0.0.2:4711; n4 cannot reach n2 at 10.0.0.2:4711"+advice)
	c.report("n1", &rendezvous.Failure{Death: death.Death{Host: "n1", ExitCode: 1}})
	c.settle(0)
	c.rejoin()
	c.settle(0)
	if got := keys(c.s.Last.Members); got != "n1 n2" || c.s.Last.ID != 2 {
		t.Errorf("round %d is %s", c.s.Last.ID, got)
	}

	// Not even if there are too few without them.
	c = started(3, 4, 1, 3)
	c.come(-1)
	c.come(-1)
	c.die("n3")
	c.cut("n4>n2 n5>n2")
	c.settle(0)
	c.rejoin()
	wantReason(t, c.settle(0), "round 2: 4 of 3 to 4 nodes; n3 is gone; n4 cannot reach n2 at 10.0.0.2:4711; n5 cannot reach n2 at 10.0.0.2:4711"+
		advice+"; gives up in 10m0s")
}

// TestApartAgainAndAgain: who is left out is a newcomer when it is back. If it is left out again soon, it is kept out
// for longer and longer, even if the job needs it, and though it can be reached whenever the next round forms. So
// claims that last for a moment do not restart the others for ever.
func TestApartAgainAndAgain(t *testing.T) {
	for _, least := range []int{2, 3} {
		c := started(least, 3, 0, 3)
		var took []time.Duration
		for range 6 {
			c.cut("n1>n3")
			c.settle(0)
			c.rejoin()
			if least == 2 {
				c.settle(0)
			}
			c.mend()
			passed := time.Duration(0)
			for ; c.s.Over != nil || !c.member("n3"); passed += time.Second {
				c.rejoin()
				c.settle(time.Second)
			}
			took = append(took, passed.Round(10*time.Second)/time.Second)
		}
		if want := []time.Duration{0, 30, 60, 120, 240, 480}; !slices.Equal(took, want) || c.s.Last.Restarts != 0 {
			t.Errorf("of %d nodes, it waits for %d s, want %d; %d restarts", least, took, want, c.s.Last.Restarts)
		}
	}
}

// TestNobodyIsApartUntilSettled, nor from one that has done its work, or is not here.
func TestNobodyIsApartUntilSettled(t *testing.T) {
	c := started(2, 3, 0, 3)
	c.cut("n1>n2 n1>n9 n9>n1 n2>n2")
	c.s.Settled = false
	c.settle(waits)
	c.wantRound(t, 1, "n1 n2 n3", 0, "")
	c.report("n2", nil)
	c.s.Settled = true
	c.settle(waits)
	c.wantRound(t, 1, "n1 n2 n3", 0, "")
}

// TestAGoneMemberIsNamed: while a member that is gone may come back, what is said of it names it.
func TestAGoneMemberIsNamed(t *testing.T) {
	c := started(2, 2, 0, 2)
	c.cut("n1>n2")
	c.s.Settled = false
	c.die("n2")
	if got := rendezvous.Form(c.s).Wait; !strings.Contains(got, "n1 cannot reach n2 at 10.0.0.2:4711") {
		t.Errorf("waits for %q", got)
	}
}

// TestApartProperties: nobody is in a round with somebody from whom it is apart, and nobody is left out who is not.
func TestApartProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(1, 3).Draw(t, "min")
		c := newCluster(least, least+rapid.IntRange(0, 4).Draw(t, "more"), rapid.IntRange(0, 2).Draw(t, "restarts"))
		some := func(t *rapid.T) string {
			if len(c.s.Nodes) == 0 {
				t.Skip("nobody is here")
			}
			return rapid.SampledFrom(c.s.Nodes).Draw(t, "node").Key
		}
		t.Repeat(map[string]func(*rapid.T){
			"come":   func(t *rapid.T) { c.come(rapid.IntRange(-1, 3).Draw(t, "rank")) },
			"die":    func(t *rapid.T) { c.die(some(t)) },
			"cut":    func(t *rapid.T) { c.cut(some(t) + ">" + some(t)) },
			"mend":   func(t *rapid.T) { c.s.Unreachable = c.s.Unreachable[len(c.s.Unreachable)/2:] },
			"rejoin": func(*rapid.T) { c.rejoin() },
			"scale": func(t *rapid.T) {
				c.s.Min = rapid.IntRange(1, 4).Draw(t, "least")
				c.s.Max = c.s.Min + rapid.IntRange(0, 4).Draw(t, "most")
			},
			"fail": func(t *rapid.T) {
				c.report(some(t), &rendezvous.Failure{Death: death.Death{ExitCode: 1}, Unreachable: make([]rendezvous.Peer, rapid.IntRange(0, 1).Draw(t, "named"))})
			},
			"": func(t *rapid.T) {
				before, rounds := c.s, len(c.formed)
				checkEnough(t, before)
				again := rendezvous.Form(c.s)
				if now := rendezvous.Form(c.s); !reflect.DeepEqual(now, again) {
					t.Fatalf("%+v follows, and %+v", now, again)
				}
				c.settle(rapid.SampledFrom([]time.Duration{0, time.Second, 30 * time.Second, waits}).Draw(t, "passed"))
				for _, f := range c.formed[rounds:] {
					checkFormed(t, before, f)
					checkApart(t, before, f)
				}
				if c.closed != nil {
					t.Skip("closed")
				}
			},
		})
	})
}

// checkApart holds a round against who cannot reach whom.
func checkApart(t *rapid.T, s rendezvous.State, f rendezvous.Formed) {
	apart := func(a, b rendezvous.Candidate) bool {
		return a.Key != b.Key && slices.ContainsFunc(s.Unreachable, func(u rendezvous.Unreachable) bool {
			return u.From == a.Key && u.To == b.Key || u.From == b.Key && u.To == a.Key
		})
	}
	fits := func(c rendezvous.Candidate) bool {
		return !slices.ContainsFunc(f.Members, func(m rendezvous.Candidate) bool { return apart(c, m) })
	}
	for _, m := range f.Members {
		if !fits(m) {
			t.Fatalf("round %d is %s, with %+v", f.ID, keys(f.Members), s.Unreachable)
		}
	}
	const named = 3 // Why has the number of the others
	others := strings.Contains(f.Why, fmt.Sprintf(", %d more until ", len(f.Apart)-named))
	for i, c := range f.Apart {
		if fits(c) || slices.Contains(f.Members, c) || !strings.Contains(f.Why, c.Key) && (i < named || !others) {
			t.Fatalf("round %d is %s without %s, with %+v: %q", f.ID, keys(f.Members), c.Key, s.Unreachable, f.Why)
		}
	}
	if s.Last == nil {
		return
	}
	// Of the members of the last round nobody is left out for nothing.
	for _, m := range s.Last.Members {
		i := slices.IndexFunc(s.Nodes, func(c rendezvous.Candidate) bool { return c.Key == m.Key })
		if i < 0 || !s.Nodes[i].Joining || s.Nodes[i].Try == m.Try || slices.ContainsFunc(f.Members, func(c rendezvous.Candidate) bool { return c.Key == m.Key }) {
			continue
		}
		asked := slices.ContainsFunc(s.Nodes, func(c rendezvous.Candidate) bool { // another has the rank
			return c.Key != m.Key && c.Node.NodeRank >= 0 && c.Node.NodeRank == s.Nodes[i].Node.NodeRank
		})
		if fits(s.Nodes[i]) && !asked && len(f.Members) < s.Max {
			t.Fatalf("round %d is %s, and not %s, with %+v", f.ID, keys(f.Members), m.Key, s.Unreachable)
		}
	}
}
