package etcd

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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
	c, err := connect(&Config{Config: rendezvous.Config{Access: rendezvous.Access{Endpoints: endpoints(s.t, addrs...)}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return ways, c
}

// TestAgentsWithALostMember: whether a member of the etcd refuses connections or falls silent, no agent loses its
// lease, and rounds follow each other.
func TestAgentsWithALostMember(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(*relay){
		"dead":   func(way *relay) { _ = way.listener.Close(); way.set(true) },
		"silent": func(way *relay) { way.hush(true) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := startServer(t)
			j := newJob(t, server.client(), 3, 3)
			j.config.Lease = 10 * time.Second
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
				lose(way)
			}
			rounds = fail(t, agents, rounds)
			time.Sleep(j.config.Lease) // what is tested is that nothing happens meanwhile
			for i, a := range agents {
				await(t, a, func(m *stateMachine) bool {
					if m.conn.lease != leases[a] {
						t.Errorf("agent %d had lease %x, and has %x: %v", i, leases[a], m.conn.lease, m.conn.leaseErr)
					}
					return true
				})
			}
			succeed(t, agents, rounds)
		})
	}
}
