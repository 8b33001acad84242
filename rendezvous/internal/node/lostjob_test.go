package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// lose has etcd come back without its data, and waits until all agents know.
func (j *job) lose(server *server, agents []*agent) {
	j.t.Helper()
	server.stop()
	server.anew()
	for _, a := range agents {
		await(j.t, a, func(m *stateMachine) bool { return m.conn.lost || m.closed != nil })
	}
}

// wantLost wants a job to have ended because of its etcd, for a reason.
func wantLost(t *testing.T, err error, reason string) {
	t.Helper()
	if o := closed(t, err); o.Code != 75 || !strings.HasPrefix(o.Reason, "etcd has lost this job, ") || !strings.HasSuffix(o.Reason, reason) {
		t.Errorf("the job ended with %+v, want exit code 75, and ...%q", o, reason)
	}
}

// TestHealthyWorkersGoOn to their end when etcd has lost the job, whether or not others have ended before. A spare,
// which waits for another round, ends at once.
func TestHealthyWorkersGoOn(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 3, 3)
	agents := j.agents(3)
	rounds := together(t, agents)
	agents[0].report(rounds[0], nil)
	spare := j.agent("spare", nil)
	waits := make(chan error, 1)
	go func() { _, err := spare.join(); waits <- err }()
	await(t, spare, func(m *stateMachine) bool { return m.conn.past != nil })

	j.lose(server, append(agents, spare))
	wantLost(t, <-waits, "this one needs another round")
	if err := over(t, rounds[0]); !closed(t, err).Success() {
		t.Errorf("the node whose workers had succeeded ends with %v", err)
	}
	agents[0].leave(nil)
	for i, a := range agents[1:] {
		if err := rounds[i+1].Err(); err != nil {
			t.Fatalf("round %d is over: %v", rounds[i+1].ID, err)
		}
		if err := a.Scale(t.Context(), 1, 1); err == nil || !strings.Contains(err.Error(), "etcd has lost this job") {
			t.Errorf("Scale = %v", err)
		}
		if err := a.Restart(t.Context(), rounds[i+1], "gorun restart"); err == nil || !strings.Contains(err.Error(), "etcd has lost this job") {
			t.Errorf("Restart = %v", err)
		}
	}
	for i, a := range agents[1:] {
		a.report(rounds[i+1], nil)
		if err := over(t, rounds[i+1]); !closed(t, err).Success() {
			t.Errorf("the node whose workers have succeeded ends with %v", err)
		}
	}
}

// TestFirstDecisionEndsALostJob on all nodes of the round, with the reason for which it is needed.
func TestFirstDecisionEndsALostJob(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for what, c := range map[string]struct {
		need   func(a *agent, round *rendezvous.Round) // is called on one of the nodes
		reason string
	}{
		"a failure": {func(a *agent, r *rendezvous.Round) { a.report(r, failure(a, 1, 3)) }, "rank 1 on n1.test: exit code 3"},
		"a leave":   {func(a *agent, _ *rendezvous.Round) { a.leave(errors.New("somebody wants it")) }, "n1 on n1.test has left"},
		"a Join":    {func(a *agent, _ *rendezvous.Round) { _, _ = a.join() }, "this one needs another round"},
	} {
		j := newJob(t, server.client(), 2, 2)
		j.config.RunID += what
		agents := j.agents(2)
		rounds := together(t, agents)
		j.lose(server, agents)
		c.need(agents[1], rounds[1])
		wantLost(t, over(t, rounds[0]), c.reason)
		_ = over(t, rounds[1])
	}
}

// TestLostBetweenTwoRounds: the next one is a decision, too.
func TestLostBetweenTwoRounds(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 2)
	agents := j.agents(2)
	rounds := together(t, agents)
	agents[0].report(rounds[0], failure(agents[0], rounds[0].Self, 3))
	wantNewRound(t, rounds)
	for _, a := range agents {
		await(t, a, func(m *stateMachine) bool { return m.conn.past.current.Over != nil })
	}
	j.lose(server, agents)
	for _, a := range agents {
		_, err := a.join()
		wantLost(t, err, "this one needs another round")
	}
}

// TestAnotherJobInALostJobsPlace: neither has anything to do with the other.
func TestAnotherJobInALostJobsPlace(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 2)
	agents, ways := j.agentsBehindWays(server, 2)
	rounds := together(t, agents)
	for _, way := range ways {
		way.setCut(true)
	}
	for _, kv := range server.memory.Lookup(below(keysOf(DefaultPrefix, j.config.RunID).root).Range) {
		server.memory.End(kv.Lease)
	}
	others := j.agents(2)
	theirs := together(t, others)
	for i, way := range ways {
		way.setCut(false)
		await(t, agents[i], func(m *stateMachine) bool { return m.conn.lost })
	}
	theirs = fail(t, others, theirs)
	if err := rounds[0].Err(); err != nil {
		t.Errorf("the lost job is over: %v", err)
	}
	agents[0].report(rounds[0], failure(agents[0], 0, 3))
	wantLost(t, over(t, rounds[1]), "rank 0 on n0.test: exit code 3")
	succeed(t, others, theirs)
}

// TestOlderStateIsALoss: an etcd that knows an earlier round has lost the job as well.
func TestOlderStateIsALoss(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	agents := j.agents(2)
	k := keysOf(DefaultPrefix, j.config.RunID)
	rounds := together(t, agents)
	old := j.server.memory.Get(k.current())
	rounds = fail(t, agents, rounds)
	write(t, &agents[0].driver.executor.writer, k.current(), old.Value)
	for _, a := range agents {
		await(t, a, func(m *stateMachine) bool { return m.conn.lost })
	}
	agents[0].report(rounds[0], nil)
	if err := over(t, rounds[0]); !closed(t, err).Success() {
		t.Errorf("the node whose workers have succeeded ends with %v", err)
	}
	agents[1].report(rounds[1], failure(agents[1], 1, 3))
	wantLost(t, over(t, rounds[1]), "rank 1 on n1.test: exit code 3")
}

// TestLostBeforeTheFirstRound: the job begins anew.
func TestLostBeforeTheFirstRound(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 2)
	agents := j.agents(2)
	first := later(agents[0])
	awaitKeys(t, j, "job/status", 1)
	server.stop()
	time.Sleep(short)
	server.anew()
	same(t, append(together(t, agents[1:]), first(t)))
}
