package etcdstore

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/store/storetest"
	"github.com/gorun/gorun/env/configtest"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(configtest.With(m)) }

// serve starts an etcd and returns how to get a client of it.
func serve(t *testing.T) func() *clientv3.Client {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().(*net.TCPAddr)
	server, err := embedded.Start(t.Context(), embedded.Config{
		Listeners: []net.Listener{ln}, Self: rendezvous.Endpoint{Host: "127.0.0.1", Port: addr.Port}, Job: t.Name(), Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // at once
		if err := server.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr.String()}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
}

// One server for all: the stores differ in their prefixes.
func TestConformance(t *testing.T) {
	client := serve(t)
	var stores atomic.Int32
	storetest.Run(t, func(*testing.T) func() store.Store {
		prefix := fmt.Sprintf("test/%d/", stores.Add(1))
		shared := client()
		return func() store.Store { return New(shared, prefix) }
	})
}

// A long value is many keys of etcd, none of which may be left.
func TestNothingIsLeftOfALongValue(t *testing.T) {
	client := serve(t)()
	s := New(client, "job/")
	ctx := t.Context()
	long := make([]byte, 3*chunkSize+1)
	for range 2 {
		if err := s.Set(ctx, "key", long); err != nil {
			t.Fatal(err)
		}
	}
	count := func() int64 {
		t.Helper()
		answer, err := client.Get(ctx, "job/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return answer.Count
	}
	if n := count(); n != 5 {
		t.Errorf("etcd has %d keys, want one and four chunks", n)
	}
	if existed, err := s.Delete(ctx, "key"); !existed || err != nil {
		t.Errorf("Delete: %v, %v", existed, err)
	}
	if n := count(); n != 0 {
		t.Errorf("etcd has %d keys after Delete", n)
	}
}

func TestRanksMeetInEtcd(t *testing.T) {
	client := serve(t)
	const size = 3
	errs := make(chan error, size)
	for r := range size {
		s := New(client(), "jobs/17/")
		go func() {
			errs <- func() error {
				w, err := comm.Init(t.Context(), comm.WithStore(s), comm.WithRank(r, size))
				if err != nil {
					return err
				}
				defer w.Close()
				v := []int{r}
				if err := comm.AllReduce(t.Context(), w, v, comm.Sum); err != nil || v[0] != 3 {
					return fmt.Errorf("got %v, %w", v, err)
				}
				return comm.Barrier(t.Context(), w)
			}()
		}()
	}
	for range size {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
