package etcd

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// TestMembersProbe: two members lose each other, though the ties between them look as before, and a worker fails that names nobody.
// The members find out. The next round leaves out one of the two, and no restart is used up, whether one is left or not.
func TestMembersProbe(t *testing.T) {
	t.Parallel()
	for maxRestarts := range 2 {
		t.Run(fmt.Sprint("restarts ", maxRestarts), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, startServer(t).client(), 2, 3)
			j.config.Lease, j.config.MaxRestarts = 3*time.Second, maxRestarts
			var apart atomic.Bool
			agents := make([]*agent, 3)
			reasons := make(chan string, 100)
			for i := range agents {
				agents[i] = j.agent(fmt.Sprint("n", i), func(c *Config) {
					c.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
						host, _, _ := strings.Cut(addr, ".")
						if lost := map[int]string{1: "n2", 2: "n1"}[i]; apart.Load() && host == lost {
							<-ctx.Done()
							return nil, dialError(ctx.Err())
						}
						return dial(ctx, network, addr)
					}
					if i == 2 {
						c.Waiting = func(reason string) { reasons <- reason }
					}
				})
				agents[i].node.NodeRank = i
			}
			rounds := together(t, agents)
			for _, a := range agents {
				await(t, a, reachesAll(2))
			}
			apart.Store(true)
			agents[0].report(rounds[0], failure(agents[0], 0, 1))
			wantNewRound(t, rounds)
			back := later(agents[2])
			rounds = together(t, agents[:2])
			either := regexp.MustCompile(`^n(1 on n1|2 on n2)\.test cannot reach n(1 on n1|2 on n2)\.test at n[12]\.test:\d+; going on without n2 on n2\.test until`)
			if r := rounds[0]; r.ID != 2 || r.Size != 2 || r.Restarts != 0 || !either.MatchString(r.Why) {
				t.Errorf("the round is %s", show(r))
			}
			hear(t, reasons, "round 2 is running with 2 of 2 to 3 nodes; n", "cannot reach n")
			apart.Store(false)
			wantNewRound(t, rounds)
			rounds = append(together(t, agents[:2]), back(t))
			same(t, rounds)

			// If the members reach each other, the failure costs a restart, or ends the job.
			for _, a := range agents {
				await(t, a, reachesAll(2))
			}
			agents[0].report(rounds[0], failure(agents[0], 0, 1))
			if maxRestarts == 0 {
				if o := closed(t, over(t, rounds[0])); o.Code != 1 {
					t.Errorf("the job ended with %+v", o)
				}
				return
			}
			wantNewRound(t, rounds)
			if r := together(t, agents)[0]; r.ID != 4 || r.Restarts != 1 {
				t.Errorf("the round is %s", show(r))
			}
		})
	}
}

// reachesAll returns whether an agent reaches exactly n others.
func reachesAll(n int) func(*stateMachine) bool {
	return func(m *stateMachine) bool {
		reached := 0
		for _, p := range m.member.peers {
			if !p.lastSeen.IsZero() && !p.unreached {
				reached++
			}
		}
		return reached == n
	}
}

// TestProbe: one answer of any kind is enough. Only several calls without an answer show that a node cannot be reached.
func TestProbe(t *testing.T) {
	silence := func(ctx context.Context) error { <-ctx.Done(); return dialError(ctx.Err()) }
	at := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for name, c := range map[string]struct {
		calls []func(context.Context) error // the last one is repeated
		lost  bool
		took  time.Duration
	}{
		"at once":              {[]func(context.Context) error{at(dialError(syscall.ECONNREFUSED))}, false, 0},
		"lost packets":         {[]func(context.Context) error{silence, silence, silence, silence, silence, at(dialError(syscall.ECONNREFUSED))}, false, 3 * time.Second},
		"silence":              {[]func(context.Context) error{silence}, true, 3800 * time.Millisecond},
		"a route that is lost": {[]func(context.Context) error{at(dialError(syscall.ENETUNREACH))}, true, 3800 * time.Millisecond},
		"a route that is back": {[]func(context.Context) error{at(dialError(syscall.ENETUNREACH)), at(dialError(syscall.ECONNREFUSED))}, false, 200 * time.Millisecond},
		"no descriptors":       {[]func(context.Context) error{at(dialError(syscall.EMFILE))}, false, 0},
		"a pause of this process": {[]func(context.Context) error{
			func(ctx context.Context) error { time.Sleep(10 * time.Second); return dialError(ctx.Err()) },
			at(dialError(syscall.ECONNREFUSED)),
		}, false, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun, calls := time.Now(), 0
			config := &Config{dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				err := c.calls[min(calls, len(c.calls)-1)](ctx)
				calls++
				return nil, err
			}}
			err := config.probe(t.Context(), "n1:1")
			if got := isUnreachable(err); got != c.lost || time.Since(begun) != c.took {
				t.Errorf("%s: lost: %t after %v (%v), want %t after %v", name, got, time.Since(begun), err, c.lost, c.took)
			}
		})
	}
}

// TestProbeResults: a peer is unreachable if it has not answered, nor given a sign since the probe began. Results are thrown away
// if there has been an outage of etcd since, or if they are of another job.
func TestProbeResults(t *testing.T) {
	begun := time.Now()
	silence := dialError(context.DeadlineExceeded)
	for name, c := range map[string]struct {
		err    error
		change func(*stateMachine, *peer)
		lost   bool
		probed int
	}{
		"silence":                   {silence, nil, true, 3},
		"an answer":                 {nil, nil, false, 3},
		"a sign since":              {silence, func(_ *stateMachine, p *peer) { p.lastSeen = begun.Add(time.Millisecond) }, false, 3},
		"another connection by now": {silence, func(_ *stateMachine, p *peer) { p.lastSeen = time.Time{} }, false, 3},
		"an outage":                 {silence, func(m *stateMachine, _ *peer) { m.conn.outage = begun }, false, 0},
		"another job by now":        {silence, func(m *stateMachine, _ *peer) { m.conn.job = "other" }, false, 0},
		"after an outage":           {silence, func(m *stateMachine, _ *peer) { m.conn.usable = begun.Add(time.Millisecond) }, false, 0},
	} {
		m := idle()
		m.conn.job, m.member.probing = "job", true
		p := &peer{key: "k", addr: "n1:1", lastSeen: begun.Add(-time.Hour)}
		m.member.peers["k"] = p
		if c.change != nil {
			c.change(m, p)
		}
		peersProbed{probePeers{"job", 3, begun, []probedPeer{{"k", p.addr, c.err}}}}.apply(m)
		stopped := slices.ContainsFunc(m.actions, func(a action) bool { return a == action(stop{"peer k"}) })
		if stopped != c.lost || m.member.probed != c.probed || m.member.probing {
			t.Errorf("%s: lost: %t, probed: %d, probing: %t; want %t, %d", name, stopped, m.member.probed, m.member.probing, c.lost, c.probed)
		}
	}
}

// TestWhoProbes: the members of a round probe once, when a failure has ended it or the leader asks.
func TestWhoProbes(t *testing.T) {
	for name, c := range map[string]struct {
		size, probe, probed int
		over                *rendezvous.Ending
		want                int
	}{
		"a round that runs":          {size: 3},
		"a failure has ended it":     {size: 3, over: &rendezvous.Ending{Restarts: 2}, want: 7},
		"it ended without a failure": {size: 3, over: &rendezvous.Ending{Restarts: 1}},
		"the leader asks":            {size: 3, probe: 7, want: 7},
		"for an earlier round":       {size: 3, probe: 6},
		"it has probed":              {size: 3, probe: 7, over: &rendezvous.Ending{Restarts: 2}, probed: 7},
		"there are too many":         {size: rendezvous.PeersLimit + 1, probe: 7},
		"there are just few enough":  {size: rendezvous.PeersLimit, probe: 7, want: 7},
	} {
		m := idle()
		m.member.probed = c.probed
		m.conn.view = &view{
			current: &currentDoc{Round: 7, Over: c.over}, probe: probeDoc{c.probe},
			round: &roundDoc{ID: 7, Size: c.size, Restarts: 1, Assignments: map[string]assignment{"k": {}}},
		}
		if got := m.member.probeDue(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		m.key = "another"
		if got := m.member.probeDue(); got != 0 {
			t.Errorf("%s: a node that is no member probes for round %d", name, got)
		}
	}
}

// TestCallsHaveALimit: a call to a machine that does not answer ends in time, whether it confirms what a worker has found or is made
// on the way into a round.
func TestCallsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Config{dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, dialError(ctx.Err())
		}}
		begun := time.Now()
		if err := c.call(t.Context(), "n1:1", dialTimeout); !isUnreachable(err) || time.Since(begun) != dialTimeout {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		if c.masterAnswers(t.Context(), "n1:1") || time.Since(begun) != masterTimeout {
			t.Errorf("after %v", time.Since(begun))
		}
	})
}
