package etcdstore

import (
	"net/url"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

func TestMain(m *testing.M) {
	wal.SegmentSizeBytes = 1 << 20 // instead of 64 MiB for every server
	goleak.VerifyTestMain(m)
}

// startServer starts an etcd with one member, and returns its address.
func startServer(t *testing.T) (*embed.Etcd, string) {
	t.Helper()
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.TickMs, c.ElectionMs = 10, 100
	c.UnsafeNoFsync = true
	c.BcryptCost = 4
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenPeerUrls, c.AdvertiseClientUrls, c.AdvertisePeerUrls = any, any, any
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: testkit.ReservedAddr(t)}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return e, e.Clients[0].Addr().String()
}

// connected is a store that is closed when the test ends.
func connected(t *testing.T, endpoints ...string) store.Store {
	t.Helper()
	s, err := Connect(Config{Endpoints: endpoints, Prefix: "/gorun/v1/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
