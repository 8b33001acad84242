package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

// three are the configurations of one cluster on loopback, with data that stays.
func three(t testing.TB, secret []byte) []Config {
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
	t.Parallel()
	for name, credentials := range map[string][]byte{"plain": nil, "tls": secret} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
	if err == nil || !strings.Contains(err.Error(), "context canceled: no other of its 3 endpoints has joined: start gorun on their nodes") {
		t.Errorf("one of three: %v", err)
	}
	servers := startAll(t, configs[:2])
	put(t, client(t, nil, servers[1].config.Self), "a", "1")
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

// TestDecide: who founds a cluster, and who has lost a member of it.
func TestDecide(t *testing.T) {
	own := &membership.Member{ID: 1}
	first := func(id types.ID, started, learner bool) *membership.Member {
		m := &membership.Member{ID: id, RaftAttributes: membership.RaftAttributes{IsLearner: learner}}
		if started {
			m.ClientURLs = []string{"http://127.0.0.1:1"}
		}
		return m
	}
	nobody, empty := report{err: errors.New("connection refused")}, report{founds: true}
	in := func(m *membership.Member) report {
		return report{members: []*membership.Member{m, first(2, true, false)}}
	}
	for name, c := range map[string]struct {
		reports []report
		want    course
	}{
		"nobody is there":                   {[]report{nobody, nobody}, waits},
		"another one has no data":           {[]report{nobody, empty}, founds},
		"the cluster awaits it":             {[]report{nobody, in(first(1, false, false))}, founds},
		"the cluster has known it":          {[]report{nobody, in(first(1, true, false))}, joins},
		"one of the others is behind":       {[]report{in(first(1, false, false)), in(first(1, true, false))}, joins},
		"it has been replaced before":       {[]report{nobody, in(first(3, true, false))}, joins},
		"it has been a learner":             {[]report{nobody, in(first(1, false, true))}, joins},
		"it has been removed":               {[]report{nobody, in(first(4, true, false))}, joins},
		"another one has lost its data too": {[]report{empty, in(first(1, true, false))}, joins},
		"another rendezvous":                {[]report{{err: errForeign}, nobody}, waits},
	} {
		if got := decide(c.reports, own); got != c.want {
			t.Errorf("%s: course %d, want %d", name, got, c.want)
		}
	}
}

// TestOtherEndpoints: servers that differ in their endpoints, or their job, found nothing together, and say why.
func TestOtherEndpoints(t *testing.T) {
	configs := three(t, nil)[:2]
	configs[1].Job = "another"
	ctx, cancel := context.WithCancel(t.Context())
	told, results := make(chan string, 1), make(chan error)
	for i := range configs {
		configs[i].Waiting = func(reason string) {
			if strings.Contains(reason, "is of another rendezvous") {
				select {
				case told <- reason:
				default:
				}
			}
		}
		go func() {
			_, err := Start(ctx, configs[i])
			results <- err
		}()
	}
	if said := <-told; !strings.HasSuffix(said, ": give every node the same endpoints and job") {
		t.Errorf("it waits: %s", said)
	}
	cancel()
	for range configs {
		if err := <-results; err == nil {
			t.Error("it serves")
		}
	}
}

// TestOccupied: a server that is not reached at its own address, but another one, removes nobody.
func TestOccupied(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		testkit.Cannot(t, "%v", err)
	}
	config := three(t, nil)[0]
	other := &Server{config: config, name: "the other one"}
	web := &http.Server{Handler: http.HandlerFunc(other.serveFounding)}
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() { _ = web.Close() })
	config.Self = rendezvous.Endpoint{Host: "127.0.0.2", Port: int(addrOf(l).Port()) - 1}
	s := &Server{config: config, name: "this one"}
	if err := s.connectPeers(); err != nil {
		t.Fatal(err)
	}
	if err := s.unoccupied(bounded(t)); !errors.Is(err, errOccupied) {
		t.Errorf("another server answers there: %v", err)
	}
	other.name = s.name
	if err := s.unoccupied(bounded(t)); err != nil {
		t.Errorf("it reaches itself: %v", err)
	}
}

// TestLeaveInTurn: members that are told to end while they are needed, and whose data goes with them, are not missed: the last
// one serves.
func TestLeaveInTurn(t *testing.T) {
	t.Parallel()
	configs := three(t, nil)
	for i := range configs {
		configs[i].Dir, configs[i].TempDir = "", t.TempDir()
	}
	servers := startAll(t, configs)
	c := client(t, nil, configs[0].Self, configs[1].Self, configs[2].Self)
	put(t, c, "a", "1")
	// They let nobody go before they have been together for a while, which etcd does not tell.
	time.Sleep(etcdserver.HealthInterval + time.Second)
	for i, s := range servers[:2] {
		leave(t, s)
		putSomehow(t, c, "a", fmt.Sprint(i))
		if got := voters(t, client(t, nil, configs[2].Self)); len(got) != 2-i {
			t.Errorf("after %d have left, the members are %v", i+1, got)
		}
	}
	if got := get(t, client(t, nil, configs[2].Self), "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
}

// TestVanishedClient: one that is cut off is not waited for.
func TestVanishedClient(t *testing.T) {
	t.Parallel()
	s := serve(t, alone1(t))
	conn, err := net.Dial("tcp", s.config.Self.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// As a client does that is let in, and then says nothing.
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+"\x00\x00\x00\x04\x01\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	for head := make([]byte, 9); head[3] != 4 || head[4] != 1; { // its settings are acknowledged: it is let in
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head)>>8)); err != nil {
			t.Fatal(err)
		}
	}
	ctx := bounded(t)
	if err := s.Close(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("Close: %v, %v", err, ctx.Err())
	}
}

// TestMinimalLease: a cluster's leases are no longer than a server's alone.
func TestMinimalLease(t *testing.T) {
	t.Parallel()
	servers := startAll(t, three(t, nil))
	lease, err := client(t, nil, servers[0].config.Self).Grant(bounded(t), 1)
	if err != nil || lease.TTL != 1 {
		t.Errorf("a lease of 1 s has %v, %v", lease, err)
	}
}
