package node

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// TestJoinWithdrawnTooLate: a round whose member has gone back before its workers started is over, free of charge.
func TestJoinWithdrawnTooLate(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	head := j.agent("n0", nil)
	joined := later(head)
	await(t, head, func(m *stateMachine) bool { return m.leader.leads() }) // and gets rank 0
	cut := make(chan struct{})
	other := j.agent("n1", func(c *Config) {
		c.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case <-cut:
				return dial(ctx, network, addr)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	withdrawn := make(chan error)
	go func() { _, err := other.Join(ctx, other.node); withdrawn <- err }()
	first := joined(t)
	cancel()
	if err := <-withdrawn; !errors.Is(err, context.Canceled) {
		t.Errorf("Join = %v, want context.Canceled", err)
	}
	wantNewRound(t, []*rendezvous.Round{first})
	close(cut)
	if r := together(t, []*agent{head, other})[0]; r.ID != 2 || r.Restarts != 0 || r.Why != "n1 on n1.test does not take part" {
		t.Errorf("the second round is %s", show(r))
	}
}

// TestDrain ends the job where too few nodes are left: all others are told the same.
func TestDrain(t *testing.T) {
	t.Parallel()
	agents := newJob(t, startServer(t).client(), 2, 3).agents(3)
	rounds := together(t, agents)
	agents[0].leave(stopped{})
	wantNewRound(t, rounds[1:])
	rounds = together(t, agents[1:])
	agents[1].leave(stopped{})
	want := rendezvous.Outcome{Code: 143, Reason: "n1 on n1.test has left: stopped by a signal"}
	if o := closed(t, over(t, rounds[1])); o != want {
		t.Errorf("the job ended with %+v, want %+v", o, want)
	}
}

// TestLeave: a node that ends its workers for good is not waited for, unless the others cannot do without it.
func TestLeave(t *testing.T) {
	t.Parallel()
	agents := newJob(t, startServer(t).client(), 2, 3).agents(3)
	rounds := together(t, agents)
	if err := agents[0].Leave(t.Context(), rounds[0], stopped{}); err != nil {
		t.Fatal(err)
	}
	wantNewRound(t, rounds)
	rounds = together(t, agents[1:])
	if rounds[0].Size != 2 || rounds[0].Restarts != 0 || rounds[0].Why != "n0 on n0.test has left: stopped by a signal" {
		t.Errorf("then there is %+v", rounds[0])
	}
	if err := agents[1].Leave(t.Context(), rounds[0], stopped{}); err != nil {
		t.Fatal(err)
	}
	agents[2].report(rounds[1], nil)
	agents[1].report(rounds[0], nil)
	if o := closed(t, over(t, rounds[1])); !o.Success() {
		t.Errorf("a job that could not do without a node ended with %+v", o)
	}
}

// TestNobodyWaitsForALeavingNode that takes long to end its workers: whether it leaves before a newcomer comes, so that the round could not do
// without it, or when the round is over.
func TestNobodyWaitsForALeavingNode(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for _, when := range []string{"before", "when the round is over"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, client, 1, 2)
			j.config.LastCall, j.config.Lease = time.Second, time.Hour
			leaves := j.agent("n0", nil)
			leaves.node.StopTimeout = time.Hour
			first, err := leaves.join()
			if err != nil {
				t.Fatal(err)
			}
			leave := func() {
				if err := leaves.Leave(t.Context(), first, stopped{}); err != nil {
					t.Fatal(err)
				}
			}
			if when == "before" {
				leave()
			}
			second := later(j.agent("n1", nil))
			wantNewRound(t, []*rendezvous.Round{first})
			if when != "before" {
				leave()
			}
			if r := second(t); r.ID != 2 || r.Size != 1 || r.Node.ID != "n1" {
				t.Errorf("the second round is %s", show(r))
			}
		})
	}
}

// TestLeaveBeforeTheReportArrives: a node that leaves before etcd has its report tells the others why it leaves.
func TestLeaveBeforeTheReportArrives(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for name, report := range map[string]func(context.Context, *agent, *rendezvous.Round) error{
		"leaves": func(ctx context.Context, a *agent, r *rendezvous.Round) error { return a.Leave(ctx, r, stopped{}) },
		"fails": func(ctx context.Context, a *agent, r *rendezvous.Round) error {
			return a.Report(ctx, r, failure(a, 0, 9))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agents := newJob(t, client, 1, 2).agentsAndOneLate()
			rounds := together(t, agents)
			agents[0].leaveAfter(report, rounds[0])
			wantNewRound(t, rounds[1:])
			agents[1].job.size = 1
			if r := together(t, agents[1:])[0]; r.Restarts != 0 || r.Why != "n0 on n0.test has left: stopped by a signal" {
				t.Errorf("then there is %s", show(r))
			}
		})
	}
}

// TestLeaveBeforeTheSuccessArrives: a node that leaves before etcd knows that its workers have succeeded is not missed.
func TestLeaveBeforeTheSuccessArrives(t *testing.T) {
	t.Parallel()
	agents := newJob(t, startServer(t).client(), 1, 2).agentsAndOneLate()
	rounds := together(t, agents)
	agents[0].leaveAfter(func(ctx context.Context, a *agent, r *rendezvous.Round) error { return a.Report(ctx, r, nil) }, rounds[0])
	agents[1].report(rounds[1], nil)
	if o := closed(t, over(t, rounds[1])); !o.Success() {
		t.Errorf("the job ended with %+v", o)
	}
}

// agentsAndOneLate returns two agents. The reports of the first one arrive only when it leaves.
func (j *job) agentsAndOneLate() []*agent {
	late := j.agent("n0", func(c *Config) { c.Store = lateReports{c.Store} })
	return []*agent{late, j.agent("n1", nil)}
}

// lateReports is a store that takes no report but that of a node that leaves.
type lateReports struct{ store.Store }

func (s lateReports) Commit(ctx context.Context, t store.Txn) (store.Answer, error) {
	if len(t.Deletes) == 0 && slices.ContainsFunc(t.Puts, func(p store.Put) bool { return strings.Contains(p.Key, "/reports/") }) {
		<-ctx.Done()
		return store.Answer{}, ctx.Err()
	}
	return s.Store.Commit(ctx, t)
}

// leaveAfter leaves after a report that has not arrived.
func (a *agent) leaveAfter(report func(context.Context, *agent, *rendezvous.Round) error, r *rendezvous.Round) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = report(ctx, a, r)
	a.leave(stopped{})
}

type stopped struct{}

func (stopped) Error() string { return "stopped by a signal" }
func (stopped) ExitCode() int { return 128 + 15 }
