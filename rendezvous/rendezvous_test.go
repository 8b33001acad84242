package rendezvous_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/testing/rendezvoustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heldPorts counts the ports of one test that are held.
type heldPorts struct{ held atomic.Int32 }

type heldPort struct {
	*network.Port
	among *heldPorts
}

func (p heldPort) Close() error {
	p.among.held.Add(-1)
	return p.Port.Close()
}

func (p *heldPorts) reserve(_ string, port int) (rendezvous.Port, error) {
	reserved, err := network.ReservePort("", port)
	if err != nil {
		return nil, err
	}
	p.held.Add(1)
	return heldPort{reserved, p}, nil
}

// newPorts fails the test if a port is still held at its end.
func newPorts(t *testing.T) *heldPorts {
	p := new(heldPorts)
	t.Cleanup(func() {
		if n := p.held.Load(); n != 0 {
			t.Errorf("%d ports are still held", n)
		}
	})
	return p
}

func TestLocalConformance(t *testing.T) {
	rendezvoustest.Run(t, func(t *testing.T, maxRestarts int) rendezvous.Rendezvous {
		return rendezvous.NewLocal(rendezvous.StaticConfig{Reserve: newPorts(t).reserve, MaxRestarts: maxRestarts})
	})
}

func TestStaticConformance(t *testing.T) {
	rendezvoustest.Run(t, func(t *testing.T, maxRestarts int) rendezvous.Rendezvous {
		s, err := rendezvous.NewStatic(rendezvous.StaticConfig{
			Nodes: 1, Master: rendezvous.Master{Addr: "127.0.0.1", Port: testkit.ReservedPort(t)}, MaxRestarts: maxRestarts, Reserve: newPorts(t).reserve,
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func static(t *testing.T, nodes, rank int, master rendezvous.Master) *rendezvous.Static {
	t.Helper()
	s, err := rendezvous.NewStatic(rendezvous.StaticConfig{
		Nodes: nodes, NodeRank: rank, Master: master, Token: "shared", Reserve: newPorts(t).reserve,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustJoin(t *testing.T, r rendezvous.Rendezvous) *rendezvous.Round {
	t.Helper()
	round, err := r.Join(t.Context(), rendezvoustest.Self)
	if err != nil {
		t.Fatal(err)
	}
	return round
}

func TestLocalRoundsAreFresh(t *testing.T) {
	l := rendezvous.NewLocal(rendezvous.StaticConfig{Reserve: newPorts(t).reserve})
	first, second := mustJoin(t, l), mustJoin(t, l)
	if len(first.Token) != 64 || len(second.Token) != 64 || first.Token == second.Token {
		t.Errorf("tokens of %d and %d characters, equal: %t; want two of 64", len(first.Token), len(second.Token), first.Token == second.Token)
	}
	if first.Master.Addr != "127.0.0.1" || first.ID != 1 || second.ID != 2 || first.StoreAddr != "" {
		t.Errorf("rounds %d (%+v, store %q) and %d", first.ID, first.Master, first.StoreAddr, second.ID)
	}
	if err := l.Close(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestLocalKeepsAGivenMaster(t *testing.T) {
	master := rendezvous.Master{Addr: "10.9.8.7", Port: testkit.ReservedPort(t)}
	l := rendezvous.NewLocal(rendezvous.StaticConfig{Master: master, Reserve: newPorts(t).reserve})
	for range 2 {
		if round := mustJoin(t, l); round.Master != master {
			t.Errorf("master %+v, want %+v", round.Master, master)
		}
	}
	if err := l.Close(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestBusyMasterPort(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	master := rendezvous.Master{Addr: "127.0.0.1", Port: busy.Addr().(*net.TCPAddr).Port}
	for name, r := range map[string]rendezvous.Rendezvous{
		"local":         rendezvous.NewLocal(rendezvous.StaticConfig{Master: master, Reserve: newPorts(t).reserve}),
		"static node 0": static(t, 2, 0, master),
	} {
		_, err := r.Join(t.Context(), rendezvoustest.Self)
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: Join = %v, want EADDRINUSE", name, err)
		}
	}
	if round := mustJoin(t, static(t, 2, 1, master)); round.Self != 1 {
		t.Errorf("node 1, which need not bind the port, is node %d", round.Self)
	}
}

// store is one that Host serves.
type store struct{ closed atomic.Bool }

func (s *store) Close() error { s.closed.Store(true); return nil }

func TestLocalHostsAStorePerRound(t *testing.T) {
	var stores []*store
	var tokens []string
	l := rendezvous.NewLocal(rendezvous.StaticConfig{
		Reserve: newPorts(t).reserve,
		Host: func(token string) (string, io.Closer, error) {
			stores, tokens = append(stores, new(store)), append(tokens, token)
			return "127.0.0.1:" + strconv.Itoa(len(stores)), stores[len(stores)-1], nil
		},
	})
	for i := range 2 {
		round := mustJoin(t, l)
		if want := "127.0.0.1:" + strconv.Itoa(i+1); round.StoreAddr != want || round.Token != tokens[i] {
			t.Errorf("round %d: store at %q, want %q, with the round's token", round.ID, round.StoreAddr, want)
		}
	}
	if !stores[0].closed.Load() || stores[1].closed.Load() {
		t.Errorf("closed: %t and %t; want the first store only", stores[0].closed.Load(), stores[1].closed.Load())
	}
	if err := l.Close(context.Background(), nil); err != nil || !stores[1].closed.Load() {
		t.Errorf("after Close (%v) the store is served on", err)
	}
}

// TestLocalStoreOutlivesItsRound: workers that are being stopped may still ask who has failed.
func TestLocalStoreOutlivesItsRound(t *testing.T) {
	served := new(store)
	l := rendezvous.NewLocal(rendezvous.StaticConfig{
		Reserve: newPorts(t).reserve,
		Host:    func(string) (string, io.Closer, error) { return "127.0.0.1:1", served, nil },
	})
	round := mustJoin(t, l)
	if err := l.Report(t.Context(), round, &rendezvous.Failure{Death: death.Death{ExitCode: 1}}); err != nil {
		t.Error(err)
	}
	if served.closed.Load() || round.Err() == nil {
		t.Errorf("the round is over: %v, its store closed: %t; want over and open", round.Err(), served.closed.Load())
	}
	if err := l.Close(t.Context(), nil); err != nil || !served.closed.Load() {
		t.Errorf("after Close (%v) the store is served on", err)
	}
}

func TestClosedErrorText(t *testing.T) {
	failure := &rendezvous.Failure{Death: death.Death{Rank: 5, Host: "node-b"}}
	for _, c := range []struct {
		outcome rendezvous.Outcome
		want    string
	}{
		{rendezvous.OutcomeOf(nil), "the job is closed: all workers have succeeded"},
		{rendezvous.OutcomeOf(errors.New("enough")), "the job is closed: enough"},
		{rendezvous.Outcome{Code: 3, Failure: failure}, "the job is closed: rank 5 on node-b failed with exit code 3"},
	} {
		if got := (&rendezvous.ClosedError{Outcome: c.outcome}).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if want := c.outcome.Code == 0; c.outcome.Success() != want {
			t.Errorf("%s: success %t, want %t", c.want, !want, want)
		}
	}
}

func TestLocalStoreFails(t *testing.T) {
	bad := errors.New("no memory")
	l := rendezvous.NewLocal(rendezvous.StaticConfig{
		Reserve: newPorts(t).reserve,
		Host:    func(string) (string, io.Closer, error) { return "", nil, bad },
	})
	if _, err := l.Join(t.Context(), rendezvoustest.Self); !errors.Is(err, bad) {
		t.Errorf("Join = %v, want %v", err, bad)
	}
}

func TestStaticNodes(t *testing.T) {
	master := rendezvous.Master{Addr: "head", Port: 29500}
	round := mustJoin(t, static(t, 3, 2, master))
	place := rendezvous.Place{FirstRank: 6, WorldSize: 9, FirstRoleRank: 6, RoleWorldSize: 9}
	if round.Self != 2 || round.Size != 3 || round.Place != place || round.Master != master || round.Token != "shared" {
		t.Errorf("round is %+v", round)
	}
}

func TestNewStaticErrors(t *testing.T) {
	good := rendezvous.Master{Addr: "h", Port: 1}
	for _, c := range []struct {
		config rendezvous.StaticConfig
		want   string
	}{
		{rendezvous.StaticConfig{Nodes: 2, NodeRank: 2, Master: good}, "node rank 2: want 0 to 1 for 2 nodes"},
		{rendezvous.StaticConfig{Nodes: 2, NodeRank: -1, Master: good}, "node rank -1: want 0 to 1 for 2 nodes"},
		{rendezvous.StaticConfig{Nodes: 1, Master: rendezvous.Master{Port: 1}}, `master "", port 1: want an address, and a port from 1 to 65535`},
		{rendezvous.StaticConfig{Nodes: 1, Master: rendezvous.Master{Addr: "h"}}, `master "h", port 0: want an address, and a port from 1 to 65535`},
	} {
		if _, err := rendezvous.NewStatic(c.config); err == nil || err.Error() != c.want {
			t.Errorf("NewStatic(%+v) = %v, want %s", c.config, err, c.want)
		}
	}
}
