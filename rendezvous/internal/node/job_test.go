package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/liveness"
)

const (
	patience = 60 * time.Second // more than anything here takes
	never    = time.Hour        // for a last call: no round forms without nodes that may come
	short    = 200 * time.Millisecond
)

// A job is some agents that share an etcd.
type job struct {
	t      *testing.T
	server *server
	config Config
	size   int // a Join goes on until a round has so many nodes: where a last call ends, it may be before all are there
}

// newJob's rounds form when all nodes are there, however long they take to come. A test that starts fewer than most sets a LastCall.
func newJob(t *testing.T, way *way, least, most int) *job {
	return &job{t: t, server: way.server, config: Config{
		Store: way, dial: dial,
		Config: rendezvous.Config{
			RunID: t.Name(), Reserve: reserve,
			Rules: rendezvous.Rules{Min: least, Max: most, MaxRestarts: 1, Lease: 3 * time.Second, LastCall: never},
		},
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
	a := &agent{Rendezvous: r, job: j, node: rendezvous.Node{ID: id, Host: id + ".test", NodeRank: -1, Nproc: 1, Role: "default"}}
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
	answer := make(chan *liveness.Detector, 1)
	if a.driver.turn(func() { answer <- a.driver.detector }) {
		if d := <-answer; d != nil {
			d.Close()
		}
	}
	a.vanish()
}

// vanish ends the agent as if its machine were gone. Who calls it gets no answer.
func (a *agent) vanish() {
	a.driver.cancel()
	<-a.driver.done
	a.driver.others.Wait()
	a.mu.Lock()
	a.left = true
	a.mu.Unlock()
	if a.driver.detector != nil {
		a.job.t.Cleanup(a.driver.detector.Close)
	}
}

// A look is an event that looks into the machine.
type look func(*stateMachine)

func (l look) apply(m *stateMachine) { l(m) }

func (a *agent) look(f func(*stateMachine)) bool { return a.driver.post(look(f)) }

func (a *agent) key() string { return a.driver.executor.key }

func (a *agent) join() (*rendezvous.Round, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		round, err := a.Join(ctx, a.node)
		if err != nil || round.Size >= a.job.size {
			return round, err
		}
		<-round.Done()
	}
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

// fewer leaves the job with all agents but n, and returns those, and their next round.
func fewer(t *testing.T, agents []*agent, n int) ([]*agent, []*rendezvous.Round) {
	t.Helper()
	rounds := together(t, agents)
	for _, a := range agents[n:] {
		a.leave(nil)
	}
	wantNewRound(t, rounds[:n])
	return agents[:n], together(t, agents[:n])
}

// fail reports failures of all agents, and joins the next round with them, which costs one restart.
func fail(t *testing.T, agents []*agent, rounds []*rendezvous.Round) []*rendezvous.Round {
	t.Helper()
	for i, a := range agents {
		a.report(rounds[i], failure(a, rounds[i].Self, 3))
	}
	wantNewRound(t, rounds)
	next := together(t, agents)
	if last, r := rounds[0], next[0]; r.ID != last.ID+1 || r.Restarts != last.Restarts+1 {
		t.Errorf("round %s is followed by %s", show(last), show(r))
	}
	return next
}

// succeed reports that all workers have done their work, which ends the job.
func succeed(t *testing.T, agents []*agent, rounds []*rendezvous.Round) {
	t.Helper()
	for i, a := range agents {
		a.report(rounds[i], nil)
	}
	for _, r := range rounds {
		if o := closed(t, over(t, r)); o != (rendezvous.Outcome{}) {
			t.Errorf("the job ended with %+v, want success", o)
		}
	}
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

// await waits until the agent's machine is in such a state.
func await(t *testing.T, a *agent, is func(*stateMachine) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		answer := make(chan bool, 1)
		if a.look(func(m *stateMachine) { answer <- is(m) }) && <-answer {
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

func failure(a *agent, rank, code int) *rendezvous.Failure {
	return &rendezvous.Failure{Death: death.Death{Host: a.node.Host, Rank: rank, ExitCode: code}, Node: a.node.ID}
}

// awaitKeys waits until etcd has so many keys of the job below what.
func awaitKeys(t *testing.T, j *job, what string, n int) {
	t.Helper()
	root := keysOf(DefaultPrefix, j.config.RunID).root
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		left := keysLeft(j.server, root+what)
		if len(left) == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("etcd has %q, want %d keys", left, n)
		}
	}
}

// leader is the key of the job's.
func (j *job) leader(t *testing.T) string {
	t.Helper()
	doc, err := decode[leaderDoc](j.server.memory.Get(keysOf(DefaultPrefix, j.config.RunID).leader()))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Key
}
