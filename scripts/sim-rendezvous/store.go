package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
	"github.com/gorun/gorun/rendezvous/etcd"
)

// A store is an etcd, and the connections to it.
type store struct {
	endpoint string
	server   *embedded.Server   // nil: it is another's
	own      *clientv3.Client   // for looking at it
	clients  []*clientv3.Client // of the nodes
	counter  counter            // of what goes through clients
}

func openStore(ctx context.Context, clients int, endpoint, job string) (_ *store, err error) {
	s := &store{endpoint: endpoint}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if endpoint == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		s.endpoint = l.Addr().String()
		self := rendezvous.Endpoint{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
		if s.server, err = embedded.Start(ctx, embedded.Config{Listeners: []net.Listener{l}, Self: self, Job: job}); err != nil {
			return nil, err
		}
	}
	if s.own, err = s.connect(); err != nil {
		return nil, err
	}
	for range clients {
		c, err := s.connect(grpc.WithStatsHandler(&s.counter))
		if err != nil {
			return nil, err
		}
		s.clients = append(s.clients, c)
	}
	return s, nil
}

func (s *store) connect(options ...grpc.DialOption) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{s.endpoint}, Logger: zap.NewNop(),
		MaxCallRecvMsgSize: 64 << 20, DialOptions: options,
	})
}

// client is the one that node i uses.
func (s *store) client(i int) *clientv3.Client { return s.clients[i%len(s.clients)] }

// forget ends the leases of nodes, as if their time were up.
func (s *store) forget(ctx context.Context, job string, ids map[string]bool) error {
	answer, err := s.own.Get(ctx, etcd.DefaultPrefix+job+"/nodes/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	errs := make([]error, len(answer.Kvs))
	var all sync.WaitGroup
	for i, kv := range answer.Kvs {
		var doc struct {
			Is struct{ Node struct{ ID string } }
		}
		if err := json.Unmarshal(kv.Value, &doc); err != nil {
			return err
		}
		if ids[doc.Is.Node.ID] {
			all.Go(func() { _, errs[i] = s.own.Revoke(ctx, clientv3.LeaseID(kv.Lease)) })
		}
	}
	all.Wait()
	gone := func(err error) bool { return err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound) }
	return errors.Join(slices.DeleteFunc(errs, gone)...)
}

func (s *store) close() (err error) {
	for _, c := range s.clients {
		err = errors.Join(err, c.Close())
	}
	if s.own != nil {
		err = errors.Join(err, s.own.Close())
	}
	if s.server == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, s.server.Close(ctx))
}
