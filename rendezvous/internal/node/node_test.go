package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

func TestFixedSizesForm(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for _, n := range []int{1, 2, 3, 8, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			j := newJob(t, client, n, n)
			j.config.Lease = 10 * time.Second // nobody is lost here
			agents := j.agents(n)
			rounds := together(t, agents)
			r := rounds[0]
			if r.ID != 1 || r.Size != n || len(r.Token) != 64 || r.Restarts != 0 || r.Why != "" {
				t.Errorf("round is %s", show(r))
			}
			for i, a := range agents {
				if got := rounds[i].Node; got != a.node {
					t.Errorf("own node is %+v, want %+v", got, a.node)
				}
			}
			succeed(t, agents, rounds)
			if _, err := agents[0].join(); !errors.Is(err, rendezvous.ErrClosed) {
				t.Errorf("Join of a closed job: %v", err)
			}
		})
	}
}

func TestFailuresCountOnce(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 3, 3)
	j.config.Lease = 10 * time.Second // nobody is lost here
	agents := j.agents(3)
	first := together(t, agents)
	var all sync.WaitGroup
	for i, a := range agents {
		all.Go(func() { a.report(first[i], failure(a, first[i].Self, 3)) })
	}
	all.Wait()
	wantNewRound(t, first)

	second := together(t, agents)
	r := second[0]
	if r.ID != 2 || r.Restarts != 1 || !strings.Contains(r.Because(), "exit code 3; restart 1 of 1") || r.Token == first[0].Token {
		t.Errorf("the second round is %s", show(r))
	}
	for i := range agents {
		if second[i].Self != first[i].Self {
			t.Errorf("%s has rank %d, want %d as before", agents[i].node.ID, second[i].Self, first[i].Self)
		}
	}

	// Without a restart left, all are told the same.
	for i, a := range agents {
		all.Go(func() { a.report(second[i], failure(a, second[i].Self, 10+i)) })
	}
	all.Wait()
	want := closed(t, over(t, second[0]))
	for _, r := range second {
		if got := closed(t, over(t, r)); got.Failure == nil || got.Code != want.Code || !reflect.DeepEqual(got.Failure, want.Failure) || got.Code < 10 {
			t.Errorf("the job ended with %+v, and with %+v", got, want)
		}
	}
}

func TestLostNode(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for name, c := range map[string]struct {
		lose func(*agent)
		why  string
	}{
		"killed":   {(*agent).kill, "n0 on n0.test is lost"},
		"vanished": {(*agent).vanish, "n0 on n0.test is lost"},
		"left":     {func(a *agent) { a.leave(nil) }, "n0 on n0.test has left"},
		"drained":  {func(a *agent) { a.leave(errors.New("stopped")) }, "n0 on n0.test has left: stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			agents := newJob(t, client, 2, 3).agents(3)
			first := together(t, agents)
			c.lose(agents[0])
			wantNewRound(t, first[1:])
			second := together(t, agents[1:])
			if r := second[0]; r.ID != 2 || r.Restarts != 0 || r.Why != c.why {
				t.Errorf("the second round is %s", show(r))
			}
		})
	}
}

func TestLostNodeIsReplaced(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 3, 3)
	agents := j.agents(3)
	first := together(t, agents)
	hole := first[1].Self
	agents[1].kill()
	agents[1] = j.agent("new", nil)
	joined := later(agents[1])
	wantNewRound(t, []*rendezvous.Round{first[0], first[2]})
	second := append(together(t, []*agent{agents[0], agents[2]}), joined(t))
	same(t, second)
	for i, want := range []int{first[0].Self, first[2].Self, hole} {
		if second[i].Self != want {
			t.Errorf("%s has rank %d, want %d", second[i].Node.ID, second[i].Self, want)
		}
	}
}

func TestNewcomer(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 3)
	agents, first := fewer(t, j.agents(3), 2)
	late := j.agent("late", nil)
	joined := later(late)
	wantNewRound(t, first)
	second := append(together(t, agents), joined(t))
	same(t, second)
	if r := second[0]; r.Size != 3 || r.Restarts != 0 || r.Why != "more nodes have come: 1" {
		t.Errorf("the next round is %s", show(r))
	}
}

func TestLeavingForAReasonEndsTheJob(t *testing.T) {
	t.Parallel()
	agents := newJob(t, startServer(t).client(), 2, 2).agents(2)
	rounds := together(t, agents)
	agents[0].leave(errors.New("exec format error"))
	want := rendezvous.Outcome{Code: 1, Reason: "n0 on n0.test has left: exec format error"}
	if o := closed(t, over(t, rounds[1])); o != want {
		t.Errorf("the job ended with %+v, want %+v", o, want)
	}
}

// TestSettingsConflict: a node that differs is refused, and the one that waits learns why it does not come, once for each reason.
func TestSettingsConflict(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	var log testkit.Log
	first := j.agent("first", func(c *Config) {
		c.Settings = map[string]string{"version": "1.0"}
		c.Logger = testkit.LogLines(&log, slog.LevelWarn)
	})
	joined := later(first)
	awaitKeys(t, j, "nodes/", 1)
	const differs = `; the job: max_restarts 1, version 1.0 (set by first.test)`
	for range 2 {
		second := j.agent("second", func(c *Config) {
			c.MaxRestarts = 7
			c.Settings = map[string]string{"version": "1.1"}
		})
		_, err := second.join()
		want := `the nodes of a job need the same settings; this node: max_restarts 7, version 1.1` + differs
		if err == nil || err.Error() != want {
			t.Errorf("Join = %v, want %s", err, want)
		}
		second.leave(err)
	}
	third := j.agent("third", func(c *Config) { c.Settings = map[string]string{"version": "1.0"} })
	same(t, append(together(t, []*agent{third}), joined(t)))
	want := "[WARN]  second on second.test was refused: the nodes of a job need the same settings; that node: max_restarts 7, version 1.1" + differs + "\n"
	if got := log.String(); got != want {
		t.Errorf("the node that waits says %q, want %q", got, want)
	}
}

func TestWithdrawnJoin(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	j.config.Lease = 10 * time.Second // nobody is lost here
	a, b := j.agent("a", nil), j.agent("b", nil)
	ctx, cancel := context.WithCancel(t.Context())
	withdrawn := make(chan error)
	go func() { _, err := a.Join(ctx, a.node); withdrawn <- err }()
	awaitKeys(t, j, "nodes/", 1)
	cancel()
	if err := <-withdrawn; !errors.Is(err, context.Canceled) {
		t.Errorf("Join = %v, want context.Canceled", err)
	}
	awaitNobodyJoins(t, j) // otherwise a round may form for the Join that was withdrawn
	if r := together(t, []*agent{b, a})[0]; r.ID != 1 {
		t.Errorf("the first round has number %d", r.ID)
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	for range 2 { // the run ID can be used again
		agents := j.agents(2)
		if r := together(t, agents)[0]; r.ID != 1 {
			t.Errorf("the first round has number %d", r.ID)
		}
		for _, a := range agents {
			a.leave(nil)
		}
		awaitKeys(t, j, "", 0)
	}
	agents := j.agents(2)
	for i, r := range together(t, agents) {
		agents[i].report(r, nil)
	}
	for _, a := range agents {
		if _, err := a.join(); closed(t, err) != (rendezvous.Outcome{}) {
			t.Errorf("Join = %v, want success", err)
		}
		a.leave(nil)
	}
	awaitKeys(t, j, "", 1)
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 3, 3)
	reasons := make(chan string, 100)
	a := j.agent("a", func(c *Config) { c.Waiting = func(reason string) { reasons <- reason } })
	b := j.agent("b", nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var all sync.WaitGroup
	for _, a := range []*agent{a, b} {
		all.Go(func() { _, _ = a.Join(ctx, a.node) })
	}
	for reason := range reasons {
		if strings.HasPrefix(reason, "round 1: 2 of 3 nodes; gives up in ") {
			break
		}
	}
	cancel()
	all.Wait()
}
