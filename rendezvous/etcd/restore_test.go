package etcd

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// TestEtcdComesBackEmpty: the agents put the job back, with its round, its budget, and what they have reported.
func TestEtcdComesBackEmpty(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 3, 3)
	agents := j.agents(3)
	rounds := fail(t, agents, together(t, agents))
	agents[0].report(rounds[0], nil)

	server.stop()
	server.anew()
	awaitKeys(t, j, "nodes/", 3)
	awaitKeys(t, j, "reports/", 1)
	for _, r := range rounds {
		if err := r.Err(); err != nil {
			t.Fatalf("round %d is over: %v", r.ID, err)
		}
	}

	succeed(t, agents[1:], rounds[1:])
	if o := closed(t, over(t, rounds[0])); !o.Success() {
		t.Errorf("the job ended with %+v for who had reported before", o)
	}
}

// TestEtcdComesBackEmptyBetweenTwoRounds: the next one has the next number, and the budget is as it was.
func TestEtcdComesBackEmptyBetweenTwoRounds(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 2)
	agents := j.agents(2)
	rounds := together(t, agents)
	agents[0].report(rounds[0], failure(agents[0], rounds[0].Self, 3))
	wantNewRound(t, rounds)
	joined := later(agents[0])
	await(t, agents[0], func(m *stateMachine) bool { return m.member.enrolledTry == 2 })
	for _, a := range agents {
		await(t, a, func(m *stateMachine) bool { return m.conn.past.current.Over != nil })
	}
	server.stop()
	server.anew()
	both := append(together(t, agents[1:]), joined(t))
	same(t, both)
	if r := both[0]; r.ID != 2 || r.Restarts != 1 {
		t.Errorf("the round is %s", show(r))
	}
}

// TestEtcdLosesAMember with its data: what that node knew is missing, and it is lost as any other.
func TestEtcdLosesAMember(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 3)
	agents := j.agents(3)
	rounds := together(t, agents)
	server.stop()
	agents[1].vanish()
	server.anew()
	rest := []*agent{agents[0], agents[2]}
	wantNewRound(t, []*rendezvous.Round{rounds[0], rounds[2]})
	if r := together(t, rest)[0]; r.ID != 2 || r.Size != 2 || r.Restarts != 0 || !strings.HasSuffix(r.Why, " is lost") {
		t.Errorf("the round is %s", show(r))
	}
}

// TestTwoHistories: where another job of the name has been established meanwhile, this one is over. Before that the other one gives
// way.
func TestTwoHistories(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for _, established := range []bool{false, true} {
		t.Run(fmt.Sprint("established ", established), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server.client(), 1, 1)
			way := newRelay(t, server.addr())
			cut := j.agent("cut", func(c *Config) { c.Client = server.clientBy(way) })
			round := together(t, []*agent{cut})[0]
			round = fail(t, []*agent{cut}, []*rendezvous.Round{round})[0] // it is established
			way.set(true)
			if _, err := j.client.Delete(t.Context(), keysOf(DefaultPrefix, j.config.RunID).root, clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			other := j.agent("other", nil)
			its := together(t, []*agent{other})[0]
			if established {
				awaitKeys(t, j, "job/established", 1)
			}
			way.set(false)
			loser, stays := round, its
			if !established {
				loser, stays = its, round
			}
			err := over(t, loser)
			if stays.Err() != nil {
				t.Errorf("the other job's round is over: %v", stays.Err())
			}
			if !established {
				if !errors.Is(err, rendezvous.ErrNewRound) {
					t.Errorf("the round ended with %v", err)
				}
				return
			}
			if o := closed(t, err); o.Code != 75 || !strings.Contains(o.Reason, "etcd has lost this job, and has another one named") {
				t.Errorf("the job ended with %+v", o)
			}
		})
	}
}

// TestAnOldStateIsNotTheEnd: an etcd that has been set back, as from a copy of its data, is told what has been since.
func TestAnOldStateIsNotTheEnd(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	agents := j.agents(2)
	k := keysOf(DefaultPrefix, j.config.RunID)
	rounds := together(t, agents)
	old, err := j.client.Get(t.Context(), k.root, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	agents[0].report(rounds[0], failure(agents[0], rounds[0].Self, 3))
	wantNewRound(t, rounds)
	rounds = together(t, agents)
	then := []clientv3.Op{clientv3.OpDelete(k.round(2, initial(agents[0].key())))}
	for _, kv := range old.Kvs {
		if key := string(kv.Key); key == k.current() || strings.HasPrefix(key, k.rounds()) {
			then = append(then, clientv3.OpPut(key, string(kv.Value)))
		}
	}
	if a, b := initial(agents[0].key()), initial(agents[1].key()); a != b {
		then = append(then, clientv3.OpDelete(k.round(2, b)))
	}
	if _, err := j.client.Txn(t.Context()).Then(then...).Commit(); err != nil {
		t.Fatal(err)
	}
	if rounds[0].ID != 2 {
		t.Errorf("the second round is %s", show(rounds[0]))
	}
	succeed(t, agents, rounds)
}
