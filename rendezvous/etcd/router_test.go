package etcd

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gorun/gorun/rendezvous"
)

// ways are several to one etcd, as if they led to its members, and a client that knows them.
func (s *server) ways(n int) ([]*relay, *clientv3.Client) {
	s.t.Helper()
	var ways []*relay
	var addrs []string
	for range n {
		way := newRelay(s.t, s.addr())
		ways, addrs = append(ways, way), append(addrs, way.addr())
	}
	c, err := connect(&Config{Config: rendezvous.Config{
		Access: rendezvous.Access{Endpoints: endpoints(s.t, addrs...)}, Rules: rendezvous.Rules{Lease: 2 * time.Second},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return ways, c
}

// soon is more than a request takes that has to go to another member, and less than one at a silent member.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestSilentMember: whichever member falls silent, requests are answered, leases are kept, and watches hear what happens.
func TestSilentMember(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	ways, c := server.ways(3)
	lease, err := c.Grant(soon(t), 60)
	if err != nil {
		t.Fatal(err)
	}
	changes := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watching := make(chan struct{})
	begun := make(chan struct{}, 100)
	go func() {
		defer close(watching)
		watch(ctx, c, "a", "b", func(events []*clientv3.Event) {
			if len(events) == 0 {
				begun <- struct{}{}
			}
			for _, e := range events {
				changes <- string(e.Kv.Value)
			}
		})
	}()
	<-begun
	for i, way := range ways {
		way.hush(true)
		if _, err := c.KeepAliveOnce(soon(t), lease.ID); err != nil {
			t.Errorf("without member %d, the lease: %v", i, err)
		}
		for j := range 6 {
			value := fmt.Sprintf("%d while member %d is silent", j, i)
			if _, err := c.Put(soon(t), "a", value); err != nil {
				t.Fatalf("without member %d: %v", i, err)
			}
			if answer, err := c.Get(soon(t), "a"); err != nil || string(answer.Kvs[0].Value) != value {
				t.Fatalf("without member %d: a is %v, %v", i, answer, err)
			}
			for heard := ""; heard != value; {
				select {
				case heard = <-changes:
				case <-soon(t).Done():
					t.Fatalf("without member %d, the watch has heard nothing of %q", i, value)
				}
			}
		}
		way.hush(false)
	}
	cancel()
	<-watching
}

// TestDeadMembers: those that refuse are passed over at once. When all do, that is the reason, and the first to come back is
// found.
func TestDeadMembers(t *testing.T) {
	t.Parallel()
	ways, c := startServer(t).ways(3)
	for _, way := range ways[:2] {
		_ = way.listener.Close()
		way.set(true)
	}
	for range 3 {
		if _, err := c.Put(soon(t), "a", "1"); err != nil {
			t.Fatal(err)
		}
	}
	ways[2].set(true)
	if _, err := c.Put(soon(t), "a", "1"); status.Code(err) != codes.Unavailable {
		t.Errorf("all are dead: %v", err)
	}
	time.AfterFunc(5*minDelay, func() { ways[2].set(false) })
	if _, err := c.Put(soon(t), "a", "1"); err != nil {
		t.Errorf("one is back: %v", err)
	}
}

// TestOneMember is not asked twice, however slow it is.
func TestOneMember(t *testing.T) {
	t.Parallel()
	ways, c := startServer(t).ways(1)
	put := func() (int64, error) {
		_, err := c.Put(soon(t), "a", "1")
		if err != nil {
			return 0, err
		}
		answer, err := c.Get(soon(t), "a")
		if err != nil {
			return 0, err
		}
		return answer.Kvs[0].Version, nil
	}
	if _, err := put(); err != nil {
		t.Fatal(err)
	}
	ways[0].hush(true)
	time.AfterFunc(5*minDelay, func() { ways[0].hush(false) })
	if version, err := put(); err != nil || version != 2 {
		t.Errorf("version %d, %v", version, err)
	}
}

// TestAnswers: a refusal counts as an answer, and is not asked for again.
func TestAnswers(t *testing.T) {
	t.Parallel()
	_, c := startServer(t).ways(3)
	if _, err := c.Get(soon(t), "a", clientv3.WithRev(1000)); err == nil || !strings.Contains(err.Error(), "future revision") {
		t.Errorf("a revision that there is not: %v", err)
	}
	if _, err := c.KeepAliveOnce(soon(t), 1); err == nil || !strings.Contains(err.Error(), "lease not found") {
		t.Errorf("a lease that there is not: %v", err)
	}
}

// TestAgentsWithASilentMember: no agent notices, and rounds follow each other as ever.
func TestAgentsWithASilentMember(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 3, 3)
	j.config.Lease = 3 * time.Second // a machine that does much else takes long to renew a lease
	var agents []*agent
	var ways []*relay
	for i := range 3 {
		own, c := server.ways(3)
		ways = append(ways, own[0])
		agents = append(agents, j.agent(fmt.Sprint("n", i), func(config *Config) { config.Client = c }))
	}
	rounds := together(t, agents)
	leases := make(map[*agent]clientv3.LeaseID)
	for _, a := range agents {
		await(t, a, func(m *stateMachine) bool { leases[a] = m.member.enrolledLease; return true })
	}
	for _, way := range ways {
		way.hush(true)
	}
	time.Sleep(2 * j.config.Lease) // what is tested is that nothing happens meanwhile
	for i, a := range agents {
		await(t, a, func(m *stateMachine) bool {
			if m.conn.lease != leases[a] || m.conn.leaseErr != nil || !m.conn.outage.IsZero() {
				t.Errorf("agent %d had lease %x, and has %x: %v", i, leases[a], m.conn.lease, m.conn.leaseErr)
			}
			return true
		})
	}
	begun := time.Now()
	rounds = fail(t, agents, rounds)
	if took := time.Since(begun); took > callTimeout {
		t.Errorf("a new round has taken %v", took)
	}
	succeed(t, agents, rounds)
}
