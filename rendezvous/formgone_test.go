package rendezvous_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

func describeGone(list []rendezvous.GoneNode) string {
	var parts []string
	for _, g := range list {
		parts = append(parts, fmt.Sprintf("%d+%d on %s: %s", g.FirstRank, g.Nproc, g.Host, g.Why))
	}
	return strings.Join(parts, ", ")
}

// TestGoneNodes: the end of a round, and the round that follows, name the nodes that are gone, with their ranks.
func TestGoneNodes(t *testing.T) {
	failed := &rendezvous.Failure{Death: death.Death{Host: "n1", Rank: 0, ExitCode: 1}}
	long := strings.Repeat("ü\n", 400)
	for name, test := range map[string]struct {
		happens     func(*cluster) // in a round of three, with two workers each
		over, round string         // who is gone then
	}{
		"lost":                            {func(c *cluster) { c.die("n2") }, "2+2 on n2: n2 is lost", "2+2 on n2: n2 is lost"},
		"two are lost":                    {func(c *cluster) { c.die("n1"); c.die("n3") }, "0+2 on n1: n1 is lost, 4+2 on n3: n3 is lost", "0+2 on n1: n1 is lost, 4+2 on n3: n3 is lost"},
		"leaves":                          {func(c *cluster) { c.leave("n3", rendezvous.Outcome{Code: 1, Reason: "SIGTERM"}) }, "4+2 on n3: n3 has left: SIGTERM", "4+2 on n3: n3 has left: SIGTERM"},
		"long reason":                     {func(c *cluster) { c.leave("n3", rendezvous.Outcome{Code: 1, Reason: long}) }, "4+2 on n3: n3 has left: " + strings.Repeat("ü ", 80), ""},
		"cut off":                         {func(c *cluster) { c.cut("n1>n3") }, "4+2 on n3: n3 is left out", "4+2 on n3: n3 is left out"},
		"worker fails":                    {func(c *cluster) { c.report("n1", failed) }, "", ""},
		"absent, as is the leader":        {func(c *cluster) { c.s.Settled = false; c.die("n2"); c.report("n1", failed) }, "", "2+2 on n2: n2 is lost"},
		"newcomer":                        {func(c *cluster) { c.come(-1) }, "", ""},
		"done and gone":                   {func(c *cluster) { c.report("n2", nil); c.die("n2"); c.die("n3") }, "4+2 on n3: n3 is lost", "4+2 on n3: n3 is lost"},
		"lost while the next round forms": {func(c *cluster) { c.report("n1", failed); c.settle(0); c.die("n2") }, "2+2 on n2: n2 is lost", "2+2 on n2: n2 is lost"},
		"two, one after the other":        {func(c *cluster) { c.die("n2"); c.settle(0); c.die("n1") }, "2+2 on n2: n2 is lost", "0+2 on n1: n1 is lost, 2+2 on n2: n2 is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1, 4, 3)
			for range 3 {
				c.come(-1)
			}
			for i := range c.s.Nodes {
				c.s.Nodes[i].Node.Nproc = 2
			}
			c.settle(0)
			c.settle(30 * time.Second)
			test.happens(c)
			c.settle(0)
			if c.s.Over == nil {
				t.Fatal("the round is not over")
			}
			over := describeGone(c.s.Over.Gone)
			if !strings.HasPrefix(over, test.over) || over != "" && test.over == "" {
				t.Errorf("gone when the round is over: %q, want %q", over, test.over)
			}
			for _, g := range c.s.Over.Gone {
				if err := g.Check(); err != nil {
					t.Error(err)
				}
			}
			c.s.Settled = true
			c.rejoin()
			c.settle(0)
			c.settle(30 * time.Second)
			if got := describeGone(c.s.Last.Gone); c.s.Last.ID != 2 || got != test.round && test.round != "" {
				t.Errorf("gone in round %d: %q, want %q", c.s.Last.ID, got, test.round)
			}
		})
	}
}

// TestRanksOfSurvivors: who stays keeps its rank, unless there are fewer nodes, or a newcomer asks for a rank.
func TestRanksOfSurvivors(t *testing.T) {
	for name, test := range map[string]struct {
		come []int // the ranks that newcomers ask for
		want string
	}{
		"none takes its place":       {nil, "n1 n3"},
		"one takes its place":        {[]int{-1}, "n1 n4 n3"},
		"two come":                   {[]int{-1, -1}, "n1 n4 n3 n5"},
		"two, and one asks for rank": {[]int{-1, 0}, "n5 n1 n3 n4"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(2, 4, 0)
			for range 3 {
				c.come(-1)
			}
			c.settle(0)
			c.settle(30 * time.Second)
			c.die("n2")
			c.settle(0)
			for _, rank := range test.come {
				c.come(rank)
			}
			c.rejoin()
			c.settle(0)
			if got := keys(c.s.Last.Members); got != test.want {
				t.Errorf("the round is %s, want %s", got, test.want)
			}
		})
	}
}

// TestBadGoneNodes: what no round can have had is refused, when it comes from elsewhere.
func TestBadGoneNodes(t *testing.T) {
	good := rendezvous.GoneNode{ID: "n", Host: "h", Nproc: 1, Why: "n is lost"}
	for _, bad := range []func(*rendezvous.GoneNode){
		func(g *rendezvous.GoneNode) { g.Nproc = 0 },
		func(g *rendezvous.GoneNode) { g.Nproc = rendezvous.WorldLimit + 1 },
		func(g *rendezvous.GoneNode) { g.FirstRank = -1 },
		func(g *rendezvous.GoneNode) { g.FirstRank = rendezvous.WorldLimit },
	} {
		g := good
		if err := g.Check(); err != nil {
			t.Error(err)
		}
		bad(&g)
		if g.Check() == nil {
			t.Errorf("%+v passes", g)
		}
	}
}
