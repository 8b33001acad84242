package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

// TestFirewall: what lets through the master's port and not those of agents is not in the way of workers.
func TestFirewall(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 2)
	j.config.Lease = 3 * time.Second
	head := j.agent("n0", nil)
	first := later(head)
	await(t, head, func(m *stateMachine) bool { return m.leader.leads() })
	var port int // of the master
	other := j.agent("n1", func(conf *Config) {
		conf.dial = func(ctx context.Context, _, addr string) (net.Conn, error) {
			if strings.HasSuffix(addr, fmt.Sprintf(":%d", port)) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
		}
	})
	await(t, head, func(m *stateMachine) bool { port = m.member.self.Port; return port != 0 })
	if _, err := other.join(); err != nil {
		t.Error(err)
	}
	if round := first(t); round.Master.Port != port {
		t.Errorf("the master's port is %d, and its node has reserved %d", round.Master.Port, port)
	}
}

// TestUnreachableMaster: a node that cannot reach rank 0's does not start workers there. If the job cannot do without one of them, it
// waits until they reach each other, which uses up no restart, or until it has waited for too long.
func TestUnreachableMaster(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	refusing := testkit.ReservedAddr(t) // what a name means to other nodes
	for name, c := range map[string]struct {
		dial func(ctx context.Context, network, addr string) (net.Conn, error)
		want string
	}{
		"loopback": {
			func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, refusing)
			}, "that is 127.0.0.1, which is n1.test itself",
		},
		"name": {
			func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "n0.test", IsNotFound: true}}
			}, "lookup n0.test: no such host",
		},
		"route": {
			func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
			}, "no route to host",
		},
		"silence": {
			func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
			}, "context deadline exceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, client, 2, 2)
			j.config.Lease, j.config.MaxRestarts, j.config.JoinTimeout = 3*time.Second, 0, 10*time.Second
			head := j.agent("n0", nil)
			joined := later(head)
			await(t, head, func(m *stateMachine) bool { return m.leader.leads() }) // and gets rank 0
			reasons := make(chan string, 100)
			var mended atomic.Bool
			other := j.agent("n1", func(conf *Config) {
				conf.Waiting = func(reason string) { reasons <- reason }
				conf.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if mended.Load() {
						return dial(ctx, network, addr)
					}
					return c.dial(ctx, network, addr)
				}
			})
			second := later(other)
			wantNewRound(t, []*rendezvous.Round{joined(t)})
			want := []string{"round 1: n1.test cannot reach n0.test, where rank 0 is, at n0.test:", c.want, "; give n0.test an address that the others reach, with --local-addr"}
			hear(t, reasons, want...)
			if name == "route" { // until it is mended
				joined = later(head)
				hear(t, reasons, "round 2: 2 of 2 nodes; n1 on n1.test cannot reach n0 on n0.test at n0.test:", "gives up in ")
				mended.Store(true)
				rounds := []*rendezvous.Round{joined(t), second(t)}
				same(t, rounds)
				if r := rounds[0]; r.ID != 2 || r.Restarts != 0 || !strings.HasPrefix(r.Why, "n1 on n1.test cannot reach n0 on n0.test at n0.test:") {
					t.Errorf("the round is %s", show(r))
				}
				return
			}
			_, end := head.join()
			o := closed(t, end)
			if o.Code != 75 || !strings.HasPrefix(o.Reason, "not enough nodes reach each other: round 2: 2 of 2 nodes after 10s; n1 on n1.test cannot reach n0 on n0.test at n0.test:") {
				t.Errorf("the job ended with %+v", o)
			}
		})
	}
}

// hear waits for a reason to wait that has all parts.
func hear(t *testing.T, reasons <-chan string, parts ...string) {
	t.Helper()
	var heard []string
	for limit := time.After(patience); ; {
		select {
		case reason := <-reasons:
			heard = append(heard, reason)
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(reason, part) }) {
				return
			}
		case <-limit:
			t.Fatalf("nobody says %q, but %q", parts, heard)
		}
	}
}

// TestMasterDiesFirst: that one cannot be reached since it is dead is no reason to leave.
func TestMasterDiesFirst(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 2, 3)
	j.config.Lease = time.Hour
	dead := make(chan struct{})
	j.config.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "n2.test:") {
			select {
			case <-dead:
			case <-ctx.Done():
			}
		}
		return dial(ctx, network, addr)
	}
	agents := j.agents(3)
	leader, head := agents[0], agents[2]
	head.node.NodeRank = 0
	first := later(leader)
	await(t, leader, func(m *stateMachine) bool { return m.leader.leads() })
	second := later(agents[1])
	round, err := head.join()
	if err != nil || round.Self != 0 {
		t.Fatalf("%v, %+v", err, round)
	}
	tied(t, leader, []*agent{head})
	head.kill()
	close(dead)
	rounds := []*rendezvous.Round{first(t), second(t)}
	same(t, rounds)
	if r := rounds[0]; r.ID != 2 || r.Restarts != 0 || r.Why != "n2 on n2.test is lost" {
		t.Errorf("the round is %s", show(r))
	}
}

// TestMasterPort: where rank 0 is the port must be free. If it is not, the others go on without that node.
func TestMasterPort(t *testing.T) {
	t.Parallel()
	j := newJob(t, startServer(t).client(), 1, 2)
	j.config.MasterPort = testkit.ReservedPort(t)
	var busy sync.Map // by the number of the agent
	agents := make([]*agent, 2)
	for i := range agents {
		agents[i] = j.agent(fmt.Sprint("n", i), func(c *Config) {
			c.Reserve = func(host string, port int) (rendezvous.Port, error) {
				if _, is := busy.Load(i); is {
					return nil, fmt.Errorf("port %d: %w", port, syscall.EADDRINUSE)
				}
				return reserve(host, port)
			}
		})
	}
	rounds := together(t, agents)
	if r := rounds[0]; r.Master.Port != j.config.MasterPort {
		t.Errorf("the round is %s, want port %d", show(r), j.config.MasterPort)
	}
	head := 0
	if rounds[1].Self == 0 {
		head = 1
	}
	busy.Store(head, true)
	agents[head].report(rounds[head], failure(agents[head], 0, 3))
	wantNewRound(t, rounds)
	joined := later(agents[1-head])
	if _, err := agents[head].join(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("Join = %v, want EADDRINUSE", err)
	}
	agents[head].leave(nil)
	r := joined(t)
	if r.Size == 2 { // it was in the round before the port was found to be busy
		wantNewRound(t, []*rendezvous.Round{r})
		r = later(agents[1-head])(t)
	}
	if r.Size != 1 || r.Master.Port != j.config.MasterPort || r.Restarts != 1 {
		t.Errorf("the round is %s", show(r))
	}
}
