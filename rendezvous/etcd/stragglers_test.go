package etcd

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/gorun/gorun/rendezvous"
)

// A straggler keeps every write, to carry it out again, as a member of etcd does that was stopped when it was asked first.
type straggler struct {
	pb.KVClient
	writes []func(context.Context) error
}

func (s *straggler) Put(ctx context.Context, in *pb.PutRequest, opts ...grpc.CallOption) (*pb.PutResponse, error) {
	s.writes = append(s.writes, func(ctx context.Context) error { return second(s.KVClient.Put(ctx, in)) })
	return s.KVClient.Put(ctx, in, opts...)
}

func (s *straggler) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	s.writes = append(s.writes, func(ctx context.Context) error { return second(s.KVClient.Txn(ctx, in)) })
	return s.KVClient.Txn(ctx, in, opts...)
}

// values are what etcd has of the job, but for what people are told, and reports on rounds that are over.
func values(t *testing.T, w *writer) string {
	t.Helper()
	answer, err := w.client.Get(t.Context(), w.keys.root, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, kv := range answer.Kvs {
		if key := string(kv.Key); key != w.keys.status() && !strings.HasPrefix(key, w.keys.reportsOf(1)) {
			fmt.Fprintf(&all, "%s %s %d\n", key, kv.Value, kv.Lease)
		}
	}
	return all.String()
}

// TestLateWrites: nothing that a node or a leader has written before changes anything when etcd carries it out again.
func TestLateWrites(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	late := &straggler{KVClient: clientv3.RetryKVClient(client)}
	w := &writer{client: client, keys: keysOf(DefaultPrefix, "late"), key: "n"}
	client.KV = clientv3.NewKVFromKVClient(late, client)
	v := prepare(t, w)
	self := nodeDoc{Node: rendezvous.Node{ID: "n", Host: "h", NodeRank: -1, Nproc: 1}, Port: 1, Joining: true}
	rev := v.nodes[w.key].rev
	register := func(try int) error {
		var err error
		self.Try = try
		rev, err = w.register(t.Context(), v.leaderLease, self, v.config, rev)
		return err
	}
	look := func() error {
		now, err := read(t.Context(), w, true, new(view))
		v = now
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"the next Join", func() error { return register(2) }},
		{"another Join", func() error { return register(3) }},
		{"the round's end", func() error { return carryOut(t, w, ended(v)) }},
		{"a round", func() error {
			if err := look(); err != nil {
				return err
			}
			return w.form(t.Context(), v, rendezvous.Formed{ID: 2, Members: v.members()}, "token")
		}},
		{"a Join after it", func() error { return register(4) }},
		{"a lease that is lost", func() error {
			if err := w.revoke(t.Context(), v.leaderLease); err != nil {
				return err
			}
			lease, err := client.Grant(t.Context(), 60)
			if err != nil {
				return err
			}
			self.Try = 5
			e := enrolment{lease: lease.ID, job: v.config.Job, mine: v.config.configDoc, self: self, retention: time.Minute}
			in, err := w.enrol(t.Context(), e, v.config, false)
			if err != nil {
				return err
			}
			rev = in.rev
			if err := carryOut(t, w, &campaign{lease.ID, leaderDoc{Key: w.key, Host: "h"}}); err != nil {
				return err
			}
			return look()
		}},
		{"a Join under the new lease", func() error { return register(6) }},
		{"the end", func() error { return w.close(t.Context(), v, rendezvous.Outcome{}, time.Now()) }},
	} {
		before := values(t, w)
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		after := values(t, w)
		if after == before {
			t.Errorf("%s: nothing is written", step.what)
		}
		for _, write := range late.writes {
			_ = write(t.Context()) // its lease may be gone
			if now := values(t, w); now != after {
				t.Fatalf("%s: a request that is late changes\n%s\nto\n%s", step.what, after, now)
			}
		}
	}
}
