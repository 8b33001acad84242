package embedded

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// three are the configurations of one cluster on loopback, with data that stays.
func three(t *testing.T, secret []byte) []Config {
	t.Helper()
	var members []rendezvous.Endpoint
	configs := make([]Config, 3)
	for i := range configs {
		l, self := listen(t, "127.0.0.1")
		members = append(members, self)
		configs[i] = Config{Listeners: []net.Listener{l}, Self: self, Job: t.Name(), Dir: t.TempDir(), Secret: secret}
	}
	for i := range configs {
		configs[i].Members = slices.Clone(members)
		slices.Reverse(members[:2]) // in any order
	}
	return configs
}

// startAll starts servers at the same time; the test's end closes them.
func startAll(t *testing.T, configs []Config) []*Server {
	t.Helper()
	servers, errs := make([]*Server, len(configs)), make(chan error)
	for i, c := range configs {
		go func() {
			var err error
			servers[i], err = Start(bounded(t), c)
			errs <- err
		}()
	}
	for range configs {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		for _, s := range servers {
			if s != nil {
				leave(t, s)
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return servers
}

// TestAnyOneMayDie: two members go on without the third, which comes back on its data and lets another one go.
func TestAnyOneMayDie(t *testing.T) {
	for name, credentials := range map[string][]byte{"plain": nil, "tls": secret} {
		t.Run(name, func(t *testing.T) {
			configs := three(t, credentials)
			servers := startAll(t, configs)
			c := client(t, clientTLS(t, credentials), configs[0].Self, configs[1].Self, configs[2].Self)
			put(t, c, "a", "1")
			for gone := range servers {
				leave(t, servers[gone])
				putSomehow(t, c, "a", configs[gone].Self.String())

				again := configs[gone]
				l, err := net.Listen("tcp", again.Self.String())
				if err != nil {
					t.Fatal(err)
				}
				again.Listeners = []net.Listener{l}
				if servers[gone], err = Start(bounded(t), again); err != nil {
					t.Fatal(err)
				}
				own := client(t, clientTLS(t, credentials), again.Self)
				if got := get(t, own, "a"); got != again.Self.String() {
					t.Errorf("a is %q at %s, which has come back", got, again.Self)
				}
				own.Close()
			}
		})
	}
}

// putSomehow goes on when a member dies while it is asked.
func putSomehow(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	ctx := bounded(t)
	for {
		_, err := c.Put(ctx, key, value)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("put %s: %v", key, err)
		}
	}
}

// TestTwoOfThreeSuffice: two start without the third; one by itself waits as long as it is to.
func TestTwoOfThreeSuffice(t *testing.T) {
	configs := three(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		_, err := Start(ctx, configs[2])
		waited <- err
	}()
	cancel()
	err := <-waited
	if err == nil || !strings.Contains(err.Error(), "no other of its 3 endpoints has joined (context canceled): start gorun on their nodes") {
		t.Errorf("one of three: %v", err)
	}
	servers := startAll(t, configs[:2])
	put(t, client(t, nil, servers[1].config.Self), "a", "1")
}

// TestLostData: a member that comes back with nothing is refused, with the reason: it might vote twice.
func TestLostData(t *testing.T) {
	configs := three(t, nil)
	servers := startAll(t, configs)
	put(t, client(t, nil, configs[0].Self), "a", "1")
	leave(t, servers[2])
	again := configs[2]
	again.Dir = t.TempDir()
	l, _ := listen(t, "127.0.0.1")
	again.Listeners = []net.Listener{l}
	if _, err := Start(bounded(t), again); err == nil || !strings.Contains(err.Error(), "whose data is lost") {
		t.Errorf("got %v", err)
	}
}

// TestPeersMustProveThemselves: a server with another secret, or none, does not become a member.
func TestPeersMustProveThemselves(t *testing.T) {
	for name, credentials := range map[string][]byte{"no secret": nil, "another secret": []byte("another secret of a stranger")} {
		t.Run(name, func(t *testing.T) {
			configs := three(t, secret)
			configs[2].Secret = credentials
			ctx, cancel := context.WithCancel(t.Context())
			refused := make(chan error, 1)
			go func() {
				_, err := Start(ctx, configs[2])
				refused <- err
			}()
			startAll(t, configs[:2])
			c := client(t, clientTLS(t, secret), configs[0].Self)
			put(t, c, "a", "1")
			members, err := c.MemberList(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members.Members {
				if m.Name == configs[2].Self.String() && len(m.ClientURLs) > 0 {
					t.Error("the stranger has joined")
				}
			}
			cancel()
			if err := <-refused; err == nil {
				t.Error("the stranger serves")
			}
		})
	}
}

// TestMinimalLease: a cluster's leases are no longer than a server's alone.
func TestMinimalLease(t *testing.T) {
	servers := startAll(t, three(t, nil))
	lease, err := client(t, nil, servers[0].config.Self).Grant(bounded(t), 1)
	if err != nil || lease.TTL != 1 {
		t.Errorf("a lease of 1 s has %v, %v", lease, err)
	}
}

// TestLosesQuorum: a member that is left alone serves, and is a leader no more.
func TestLosesQuorum(t *testing.T) {
	servers := startAll(t, three(t, nil))
	leave(t, servers[0])
	leave(t, servers[1])
	c := client(t, nil, servers[2].config.Self)
	watch := c.Watch(clientv3.WithRequireLeader(bounded(t)), "a")
	for r := range watch {
		if err := r.Err(); err != nil {
			return
		}
	}
	t.Error("a watch has ended without an error")
}
