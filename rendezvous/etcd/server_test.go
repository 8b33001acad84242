package etcd

import (
	"context"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 1 << 20 // instead of 64 MiB for every server
	goleak.VerifyTestMain(m)
}

// A server is an etcd with one member, which can go away and come back with its data.
type server struct {
	t      *testing.T
	config *embed.Config
	etcd   *embed.Etcd
	front  *relay // to where it is
}

func startServer(t *testing.T) *server {
	t.Helper()
	testkit.Once(t)
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.TickMs, c.ElectionMs = 10, 100
	c.UnsafeNoFsync = true
	c.BcryptCost = 4
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenPeerUrls = any
	// It comes back where it was.
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: testkit.ReservedAddr(t)}}
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = any, any
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	s := &server{t: t, config: c}
	s.start()
	t.Cleanup(s.stop)
	s.front = newRelay(t, s.addr())
	return s
}

func (s *server) start() {
	s.t.Helper()
	e, err := embed.StartEtcd(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	<-e.Server.ReadyNotify()
	s.etcd = e
}

func (s *server) addr() string { return s.etcd.Clients[0].Addr().String() }

// stop cuts its clients off, for whom it would wait.
func (s *server) stop() {
	s.front.set(true)
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// again starts it with its data.
func (s *server) again() {
	s.t.Helper()
	s.start()
	s.front.set(false)
}

// anew starts the server again without its data.
func (s *server) anew() {
	s.t.Helper()
	if err := os.RemoveAll(s.config.Dir); err != nil {
		s.t.Fatal(err)
	}
	s.again()
}

// compact forgets all history.
func (s *server) compact() {
	s.t.Helper()
	c := s.client()
	answer, err := c.Put(s.t.Context(), "/other", "")
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.Compact(s.t.Context(), answer.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) client() *clientv3.Client { return s.clientBy(s.front) }

func (s *server) clientBy(way *relay) *clientv3.Client {
	s.t.Helper()
	c, err := connect(&Config{Config: rendezvous.Config{Access: rendezvous.Access{Endpoints: endpoints(s.t, way.addr())}}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return c
}

// keysLeft is what etcd has below prefix.
func keysLeft(t *testing.T, c *clientv3.Client, prefix string) (left []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range answer.Kvs {
		left = append(left, string(kv.Key))
	}
	return left
}

// endpoints are those with these addresses.
func endpoints(t *testing.T, addrs ...string) (list []rendezvous.Endpoint) {
	t.Helper()
	list, err := rendezvous.ParseEndpoints(strings.Join(addrs, ","), 0)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// awaitNobodyJoins waits until no node that etcd knows of waits in a Join.
func awaitNobodyJoins(t *testing.T, j *job) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		answer, err := j.client.Get(ctx, keysOf(DefaultPrefix, j.config.RunID).nodes(), clientv3.WithPrefix())
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		joins := slices.ContainsFunc(answer.Kvs, func(kv *mvccpb.KeyValue) bool {
			doc, err := decode[nodeDoc](kv)
			return err != nil || doc.Joining
		})
		if !joins {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a node still joins")
		}
	}
}
