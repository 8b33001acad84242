package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestEndIsReadBeforeJoin: a Join does not wait for the next read, which is in half a minute, to learn that the job has ended.
func TestEndIsReadBeforeJoin(t *testing.T) {
	t.Parallel()
	m := idle()
	m.conn.dirty = true
	m.Step(m.now, ticked{})
	m.Step(m.now, answered{reading, &readJob{before: m.conn.view, now: &view{rev: 10, state: &stateDoc{Job: "j"}}}, nil})
	if m.pending[dating] {
		t.Error("a node that has not joined asks when the job has ended")
	}
	m.Step(m.now, joinCalled{id: 1, self: rendezvous.Node{ID: "n", Host: "h", Nproc: 1, NodeRank: -1}})
	if !m.pending[dating] {
		t.Error("one that joins does not")
	}
}

// TestNameOfAnEndedJob: a node that was started after a job had ended has not run in it, and must not end as if it had. A late
// node of the same run ends as the others did.
func TestNameOfAnEndedJob(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for what, end := range map[string]struct {
		failure *rendezvous.Failure
		want    string
	}{
		"well":  {nil, ": all workers succeeded; its name is kept for an hour: choose another --rdzv-id, or"},
		"badly": {&rendezvous.Failure{Death: death.Death{Host: "h", Rank: 2, ExitCode: 3}, Final: true}, ": rank 2 on h: exit code 3; its name"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, client, 1, 2)
			j.config.LastCall = short
			first := j.agent("n0", nil)
			round := together(t, []*agent{first})[0]
			first.report(round, end.failure)
			want := closed(t, over(t, round))
			first.leave(nil)
			awaitKeys(t, j, "", 1)

			_, err := j.agent("new", nil).join()
			ended, ok := errors.AsType[*EndedError](err)
			_, misuse := errors.AsType[*rendezvous.MisuseError](err)
			if !ok || !misuse || !errors.Is(err, rendezvous.ErrEnded) || !strings.Contains(err.Error(), end.want) || time.Since(ended.At) > time.Hour {
				t.Errorf("a new Join = %v, want a MisuseError with %s", err, end.want)
			}
			// As if etcd had been started again half an hour later: it takes the end to be just now.
			k := keysOf(DefaultPrefix, j.config.RunID)
			write := func(at time.Time) {
				w := &writer{store: client, keys: k}
				lease, _, err := client.Keep(t.Context(), 0, outcomeRetention)
				if err == nil {
					err = w.when().put(k.state(), stateDoc{Job: "j", Outcome: want, At: at}, lease).try(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			write(time.Now().Add(-30 * time.Minute))
			_, err = j.agent("new", func(c *Config) { c.Started = time.Now().Add(-10 * time.Minute) }).join()
			if !errors.As(err, &ended) {
				t.Errorf("a new Join, after etcd was started again = %v, want an EndedError", err)
			}
			write(time.Now())
			for what, change := range map[string]func(*Config){
				"of a late node":            func(c *Config) { c.Started = time.Now().Add(-outcomeRetention) },
				"with after_end=result":     func(c *Config) { c.EndAsOthers = true },
				"of a late node, of others": func(c *Config) { c.Started, c.Max = time.Now().Add(-outcomeRetention), 7 },
			} {
				_, err := j.agent("late", change).join()
				if o := closed(t, err); o.Code != want.Code || o.Success() != want.Success() {
					t.Errorf("a Join %s ends with %+v, want %+v", what, o, want)
				}
			}
			awaitKeys(t, j, "", 1)
		})
	}
}

// TestHostLeavesBeforeTheFirstRound: the store ends with it, so that nobody can have a round: neither who waits, nor who comes later.
func TestHostLeavesBeforeTheFirstRound(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 3, 3)
	j.config.EndAsOthers = true
	host := j.agent("n0", func(c *Config) { c.Hosts = true })
	ends := make(chan error, 2)
	for _, a := range []*agent{host, j.agent("n1", nil)} {
		go func() {
			_, err := a.join()
			ends <- err
		}()
	}
	awaitKeys(t, j, "nodes/", 2)
	await(t, host, func(m *stateMachine) bool { return m.conn.view.leader != nil })
	host.leave(stopped{})
	_, err := j.agent("n2", nil).join()
	want := rendezvous.OutcomeOf(stopped{})
	for _, err := range []error{err, <-ends, <-ends} {
		if got := closed(t, err); got != want {
			t.Errorf("the job ends with %+v, want %+v", got, want)
		}
	}
}

// TestLeavesTheNextRound: a node that waits for a round reports that it leaves that one, which may have formed already.
func TestLeavesTheNextRound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		view view
		want int
	}{
		{view{}, 1},
		{view{current: &currentDoc{Round: 3}}, 4},
		{view{current: &currentDoc{Round: 3}, state: &stateDoc{}}, 0},
	} {
		m := idle()
		m.conn.view, m.member.enrolledLease = &test.view, 7
		for _, a := range m.Step(m.now, leaveCalled{stopped{}}) {
			if l, is := a.(leaveJob); is && (l.round != test.want || (l.report.Left != nil) != (test.want > 0)) {
				t.Errorf("it leaves round %d with %+v, want round %d", l.round, l.report, test.want)
			}
		}
	}
}
