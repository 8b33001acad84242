package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// patience is more than anything here takes.
const patience = 60 * time.Second

// A port is held by a listener.
type port struct{ net.Listener }

func (p port) Number() int { return p.Addr().(*net.TCPAddr).Port }

func reserve(string, int) (rendezvous.Port, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return port{l}, err
}

// A job is some agents that share an etcd.
type job struct {
	t      *testing.T
	client *clientv3.Client
	config Config
}

func newJob(t *testing.T, client *clientv3.Client, least, most int) *job {
	return &job{t, client, Config{
		Client: client, RunID: t.Name(), Min: least, Max: most, MaxRestarts: 1,
		TTL: time.Second, LastCall: 200 * time.Millisecond, Reserve: reserve,
	}}
}

// An agent is one node of a job.
type agent struct {
	*Rendezvous
	job  *job
	node rendezvous.Node
}

// agent starts one. change, unless nil, changes its configuration.
func (j *job) agent(id string, change func(*Config)) *agent {
	j.t.Helper()
	c := j.config
	if change != nil {
		change(&c)
	}
	r, err := New(c)
	if err != nil {
		j.t.Fatal(err)
	}
	a := &agent{r, j, rendezvous.Node{ID: id, Host: id + ".test", NodeRank: -1, Nproc: 1, Role: "default"}}
	j.t.Cleanup(func() { a.leave(nil) })
	return a
}

func (j *job) agents(n int) (agents []*agent) {
	for i := range n {
		agents = append(agents, j.agent(fmt.Sprint("n", i), nil))
	}
	return agents
}

func (a *agent) leave(why error) {
	a.job.t.Helper()
	if err := a.Close(context.Background(), why); err != nil {
		a.job.t.Errorf("%s: Close: %v", a.node.ID, err)
	}
}

// kill ends the agent as a crash would: nothing is said to etcd.
func (a *agent) kill() {
	a.loop.cancel()
	<-a.loop.done
	a.loop.others.Wait()
	a.mu.Lock()
	a.left = true
	a.mu.Unlock()
}

func (a *agent) join() (*rendezvous.Round, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return a.Join(ctx, a.node)
}

func (a *agent) report(round *rendezvous.Round, f *rendezvous.Failure) {
	a.job.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := a.Report(ctx, round, f); err != nil {
		a.job.t.Errorf("%s: Report: %v", a.node.ID, err)
	}
}

// together joins with all agents, and checks that they get the same round.
func together(t *testing.T, agents []*agent) []*rendezvous.Round {
	t.Helper()
	rounds := make([]*rendezvous.Round, len(agents))
	var all sync.WaitGroup
	for i, a := range agents {
		all.Go(func() {
			round, err := a.join()
			if err != nil {
				t.Errorf("%s: Join: %v", a.node.ID, err)
				return
			}
			rounds[i] = round
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	same(t, rounds)
	return rounds
}

func same(t *testing.T, rounds []*rendezvous.Round) {
	t.Helper()
	selves := make(map[int]bool)
	for _, r := range rounds {
		if show(r) != show(rounds[0]) {
			t.Errorf("two nodes have different rounds:\n%s\n%s", show(r), show(rounds[0]))
		}
		selves[r.Self] = true
	}
	if len(selves) != len(rounds) {
		t.Errorf("%d nodes have %d ranks", len(rounds), len(selves))
	}
}

// show is all that the nodes of a round have in common.
func show(r *rendezvous.Round) string {
	return fmt.Sprint(r.ID, r.Nodes, r.Master, r.Token, r.Restarts, r.Why)
}

func over(t *testing.T, round *rendezvous.Round) error {
	t.Helper()
	select {
	case <-round.Done():
		return round.Err()
	case <-time.After(patience):
		t.Fatalf("round %d is not over", round.ID)
		return nil
	}
}

// closed is how the job ended that ended the round.
func closed(t *testing.T, err error) rendezvous.Outcome {
	t.Helper()
	var c *rendezvous.ClosedError
	if !errors.As(err, &c) {
		t.Fatalf("%v; want a *ClosedError", err)
	}
	return c.Outcome
}

func wantNewRound(t *testing.T, rounds []*rendezvous.Round) {
	t.Helper()
	for _, r := range rounds {
		if err := over(t, r); !errors.Is(err, rendezvous.ErrNewRound) {
			t.Fatalf("round %d of %s ended with %v, want ErrNewRound", r.ID, r.Nodes[r.Self].ID, err)
		}
	}
}

func TestFixedSizesForm(t *testing.T) {
	client := startServer(t).client()
	for _, n := range []int{1, 2, 3, 8, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			agents := newJob(t, client, n, n).agents(n)
			rounds := together(t, agents)
			r := rounds[0]
			if r.ID != 1 || len(r.Nodes) != n || len(r.Token) != 64 || r.Restarts != 0 || r.Why != "" {
				t.Errorf("round is %s", show(r))
			}
			for i, a := range agents {
				if got := rounds[i].Nodes[rounds[i].Self]; got != a.node {
					t.Errorf("own node is %+v, want %+v", got, a.node)
				}
			}
			for i, a := range agents {
				a.report(rounds[i], nil)
			}
			for _, r := range rounds {
				if o := closed(t, over(t, r)); o != (rendezvous.Outcome{}) {
					t.Errorf("the job ended with %+v, want success", o)
				}
			}
			if _, err := agents[0].join(); !errors.Is(err, rendezvous.ErrClosed) {
				t.Errorf("Join of a closed job: %v", err)
			}
		})
	}
}

func failure(a *agent, rank, code int) *rendezvous.Failure {
	return &rendezvous.Failure{Node: a.node.ID, Host: a.node.Host, Rank: rank, Code: code, Text: strings.Repeat("x", 100)}
}
