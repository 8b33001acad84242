package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

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
