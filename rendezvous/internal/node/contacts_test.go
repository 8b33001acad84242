package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/liveness"
)

// TestContacts: who can read etcd knows the agents of a job, and can connect to each of them. A job that is not there is told from those
// that are.
func TestContacts(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	j := newJob(t, client, 2, 2)
	connected := make(chan string, 2)
	var agents []*agent
	for _, id := range []string{"n0", "n1"} {
		agents = append(agents, j.agent(id, func(c *Config) {
			c.Control = func(conn net.Conn) { connected <- id; _ = conn.Close() }
		}))
	}
	together(t, agents)
	found, err := Contacts(t.Context(), j.config)
	if err != nil || len(found.Agents) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i, a := range found.Agents {
		_, port, err := net.SplitHostPort(a.Addr)
		if err != nil || a.Node != agents[i].node {
			t.Fatalf("%+v, %v", a, err)
		}
		conn, err := liveness.Dial(t.Context(), found.Secret, a.Key, net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			_ = conn.Close()
		}
		if id := <-connected; id != a.Node.ID {
			t.Errorf("agent %s is %s", a.Node.ID, id)
		}
	}
	j.config.RunID = "another"
	_, err = Contacts(t.Context(), j.config)
	none, ok := errors.AsType[*rendezvous.NoJobError](err)
	if !ok || !slices.Equal(none.Jobs, []string{t.Name()}) {
		t.Errorf("of a job that is not there: %v", err)
	}
}

// TestDrainTogether: of nodes that are asked to leave at the same time, no more may than the others can go on without. That counts anew in each round.
func TestDrainTogether(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 3)
	agents := j.agents(3)
	rounds := together(t, agents)
	errs := make([]error, len(agents))
	var all sync.WaitGroup
	for i, a := range agents {
		all.Go(func() { errs[i] = a.Drain(t.Context(), rounds[i]) })
	}
	all.Wait()
	may := slices.Index(errs, nil)
	for i, err := range errs {
		if i != may && (err == nil || !strings.Contains(err.Error(), "1 of the 3 nodes of round 1 are leaving or gone already, and the job needs at least 2")) {
			t.Errorf("node %d may leave with node %d: %v", i, may, err)
		}
	}
	if may < 0 {
		t.Fatal("no node may leave")
	}
	if err := agents[may].Drain(t.Context(), rounds[may]); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if err := agents[0].Restart(t.Context(), rounds[0], "gorun restart"); err != nil {
		t.Fatal(err)
	}
	wantNewRound(t, rounds)
	next := together(t, agents)
	other := (may + 1) % 3
	if err := agents[other].Drain(t.Context(), next[other]); err != nil {
		t.Errorf("in the next round: %v", err)
	}
	succeed(t, agents, next)
}

// TestDrainBesideAnother: a node that leaves for another reason counts, and also when it is gone.
func TestDrainBesideAnother(t *testing.T) {
	t.Parallel()
	agents := newJob(t, startServer(t).client(), 2, 3).agents(3)
	rounds := together(t, agents)
	if err := agents[0].Leave(t.Context(), rounds[0], stopped{}); err != nil {
		t.Fatal(err)
	}
	wantNewRound(t, rounds)
	await(t, agents[0], func(m *stateMachine) bool { return m.member.sentLeaving })
	refused := func() {
		t.Helper()
		err := agents[1].Drain(t.Context(), rounds[1])
		if want := "1 of the 3 nodes of round 1 are leaving or gone already, and the job needs at least 2"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("another node may leave: %v", err)
		}
	}
	refused()
	agents[0].leave(stopped{})
	refused()
}

// TestScale: a node that waits as a spare gets in when the job may have more nodes. Those of the round say, once, how many the job needs.
func TestScale(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	shown := make(chan string, 100)
	start := func(id string) *agent {
		return j.agent(id, func(c *Config) {
			c.Scaled = func(need int) { shown <- fmt.Sprint(id, ": ", need) }
		})
	}
	wantShown := func(want ...string) {
		t.Helper()
		var got []string
		for range len(shown) {
			got = append(got, <-shown)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	agents := []*agent{start("n0"), start("n1")}
	rounds := together(t, agents)
	wantShown()
	if err := agents[0].Scale(t.Context(), 3, 2); err == nil {
		t.Error("a minimum that exceeds the maximum")
	}
	third := start("n2")
	if err := agents[0].Scale(t.Context(), 3, 3); err != nil {
		t.Fatal(err)
	}
	joined := make(chan *rendezvous.Round, 1)
	go func() {
		round, err := third.join()
		if err != nil {
			t.Error(err)
		}
		joined <- round
	}()
	wantNewRound(t, rounds)
	var all sync.WaitGroup
	for _, a := range agents {
		all.Go(func() {
			if round, err := a.join(); err != nil || round.Size != 3 {
				t.Errorf("%+v, %v", round, err)
			}
		})
	}
	all.Wait()
	if round := <-joined; round.Size != 3 {
		t.Errorf("the third node is in a round of %d", round.Size)
	}
	for _, a := range append(agents, third) {
		if least, most := a.Limits(); least != 3 || most != 3 {
			t.Errorf("%s knows the limits %d and %d", a.node.ID, least, most)
		}
	}
	wantShown("n0: 3", "n1: 3", "n2: 3")
	if err := third.Scale(t.Context(), 1, 3); err != nil {
		t.Fatal(err)
	}
	late := start("n3") // it waits
	ctx, cancel := context.WithCancel(t.Context())
	withdrawn := make(chan error)
	go func() { _, err := late.Join(ctx, late.node); withdrawn <- err }()
	for _, a := range append(agents, third, late) {
		await(t, a, func(m *stateMachine) bool { least, _ := m.conn.view.nodeLimits(a.driver.config); return least == 1 })
	}
	wantShown("n0: 1", "n1: 1", "n2: 1")
	cancel()
	if err := <-withdrawn; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that waits: %v", err)
	}
}
