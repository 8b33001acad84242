package etcd

import (
	"context"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/gorun/gorun/rendezvous"
)

// A doubler has every write carried out twice, and returns the second answer.
type doubler struct{ pb.KVClient }

func (d doubler) Put(ctx context.Context, in *pb.PutRequest, opts ...grpc.CallOption) (*pb.PutResponse, error) {
	if _, err := d.KVClient.Put(ctx, in, opts...); err != nil {
		return nil, err
	}
	return d.KVClient.Put(ctx, in, opts...)
}

func (d doubler) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	if _, err := d.KVClient.Txn(ctx, in, opts...); err != nil {
		return nil, err
	}
	return d.KVClient.Txn(ctx, in, opts...)
}

// TestAskedTwice: who ends a job does not take its own deed for another's, and delete it.
func TestAskedTwice(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	w := &writer{client: client, keys: keysOf(DefaultPrefix, "twice"), key: "n"}
	v := prepare(t, w)
	client.KV = clientv3.NewKVFromKVClient(doubler{clientv3.RetryKVClient(client)}, client)
	if err := w.close(t.Context(), v, rendezvous.Outcome{Code: 7}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if left := keysLeft(t, client, w.keys.state()); len(left) != 1 {
		t.Errorf("of the job's end there is left %q", left)
	}
}
