package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/tie"
)

// patience is more than anything here takes.
const patience = 60 * time.Second

// A job is some agents that share an etcd.
type job struct {
	t      *testing.T
	client *clientv3.Client
	config Config
}

func newJob(t *testing.T, client *clientv3.Client, least, most int) *job {
	return &job{t, client, Config{
		Client: client, RunID: t.Name(), Min: least, Max: most, MaxRestarts: 1,
		TTL: time.Second, LastCall: 200 * time.Millisecond, Reserve: reserve, dial: dial,
	}}
}

// dial finds the hosts of tests, which are all here.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if host, port, err := net.SplitHostPort(addr); err == nil && strings.HasSuffix(host, ".test") {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
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

// kill ends the agent as a crash would: nothing is said to etcd, and its connections are closed.
func (a *agent) kill() {
	answer := make(chan *tie.End, 1)
	if a.loop.post(func() { answer <- a.loop.end }) {
		if end := <-answer; end != nil {
			end.Close()
		}
	}
	a.vanish()
}

// vanish ends the agent as if its machine were gone. Who calls it gets no answer.
func (a *agent) vanish() {
	a.loop.cancel()
	<-a.loop.done
	a.loop.others.Wait()
	a.mu.Lock()
	a.left = true
	a.mu.Unlock()
	if a.loop.end != nil {
		a.job.t.Cleanup(a.loop.end.Close)
	}
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

// later joins with one agent, beside what the test does; its result waits for the round.
func later(a *agent) func(*testing.T) *rendezvous.Round {
	var round *rendezvous.Round
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		round, err = a.join()
	}()
	return func(t *testing.T) *rendezvous.Round {
		t.Helper()
		<-done
		if err != nil {
			t.Fatalf("%s: Join: %v", a.node.ID, err)
		}
		return round
	}
}

// await waits until the agent's loop is in such a state.
func await(t *testing.T, a *agent, is func(*loop) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		answer := make(chan bool, 1)
		if a.loop.post(func() { answer <- is(a.loop) }) && <-answer {
			return
		}
	}
	t.Fatalf("%s does not come into that state", a.node.ID)
}

// same wants rounds to be one as several nodes see it, in which every worker has its own rank.
func same(t *testing.T, rounds []*rendezvous.Round) {
	t.Helper()
	selves, workers := make(map[int]bool), make(map[int]bool)
	for _, r := range rounds {
		if show(r) != show(rounds[0]) {
			t.Errorf("two nodes have different rounds:\n%s\n%s", show(r), show(rounds[0]))
		}
		selves[r.Self] = true
		for i := range r.Node.Nproc {
			workers[r.Place.FirstRank+i] = true
		}
	}
	if r := rounds[0]; len(selves) != len(rounds) || len(rounds) == r.Size && len(workers) != r.Place.WorldSize {
		t.Errorf("%d of %d nodes have %d ranks, and their workers %d of %d", len(rounds), r.Size, len(selves), len(workers), r.Place.WorldSize)
	}
}

// show is all that the nodes of a round have in common.
func show(r *rendezvous.Round) string {
	return fmt.Sprint(r.ID, r.Size, r.Place.WorldSize, r.Master, r.Token, r.Restarts, r.Why)
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
			t.Fatalf("round %d of %s ended with %v, want ErrNewRound", r.ID, r.Node.ID, err)
		}
	}
}

func TestFixedSizesForm(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for _, n := range []int{1, 2, 3, 8, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			agents := newJob(t, client, n, n).agents(n)
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
	return &rendezvous.Failure{Node: a.node.ID, Host: a.node.Host, Rank: rank, Code: code, Ending: fmt.Sprint("exit code ", code)}
}

func TestFailuresCountOnce(t *testing.T) {
	t.Parallel()
	agents := newJob(t, startServer(t).client(), 3, 3).agents(3)
	first := together(t, agents)
	var all sync.WaitGroup
	for i, a := range agents {
		all.Go(func() { a.report(first[i], failure(a, first[i].Self, 3)) })
	}
	all.Wait()
	wantNewRound(t, first)

	second := together(t, agents)
	r := second[0]
	if r.ID != 2 || r.Restarts != 1 || !strings.Contains(r.Why, "exit code 3; restart 1 of 1") || r.Token == first[0].Token {
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
	j := newJob(t, startServer(t).client(), 2, 4)
	agents := j.agents(2)
	first := together(t, agents)
	late := j.agent("late", nil)
	joined := later(late)
	wantNewRound(t, first)
	second := append(together(t, agents), joined(t))
	same(t, second)
	if r := second[0]; r.Size != 3 || r.Restarts != 0 || r.Why != "more nodes have come: 1" {
		t.Errorf("the second round is %s", show(r))
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

func TestSettingsConflict(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	first := j.agent("first", func(c *Config) { c.Options = map[string]string{"version": "1.0"} })
	joined := later(first)
	awaitKeys(t, j, "nodes/", 1)
	second := j.agent("second", func(c *Config) {
		c.MaxRestarts = 7
		c.Options = map[string]string{"version": "1.1"}
	})
	_, err := second.join()
	want := `the nodes of a job need the same settings; this node: max_restarts 7, version 1.1; the job: max_restarts 1, version 1.0 (set by first.test)`
	if err == nil || err.Error() != want {
		t.Errorf("Join = %v, want %s", err, want)
	}
	third := j.agent("third", func(c *Config) { c.Options = map[string]string{"version": "1.0"} })
	same(t, append(together(t, []*agent{third}), joined(t)))
}

// awaitKeys waits until etcd has so many keys of the job below what.
func awaitKeys(t *testing.T, j *job, what string, n int) {
	t.Helper()
	root := keysOf(DefaultPrefix, j.config.RunID).root
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		left := keysLeft(t, j.client, root+what)
		if len(left) == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("etcd has %q, want %d keys", left, n)
		}
	}
}

func TestWithdrawnJoin(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	a, b := j.agent("a", nil), j.agent("b", nil)
	ctx, cancel := context.WithCancel(t.Context())
	withdrawn := make(chan error)
	go func() { _, err := a.Join(ctx, a.node); withdrawn <- err }()
	awaitKeys(t, j, "nodes/", 1)
	cancel()
	if err := <-withdrawn; !errors.Is(err, context.Canceled) {
		t.Errorf("Join = %v, want context.Canceled", err)
	}
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
