package etcd

import (
	"cmp"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A txn is a transaction in the making: if all of when holds then is done, and otherwise orElse.
type txn struct {
	w            *writer
	when         []clientv3.Cmp
	then, orElse []clientv3.Op
	err          error // why a document cannot be written
}

func (w *writer) when(all ...clientv3.Cmp) *txn { return &txn{w: w, when: all} }

func (t *txn) put(key string, doc any, lease clientv3.LeaseID) *txn {
	text, err := encode(key, doc)
	t.err = cmp.Or(t.err, err)
	return t.do(clientv3.OpPut(key, text, clientv3.WithLease(lease)))
}

func (t *txn) delete(keys ...string) *txn {
	for _, key := range keys {
		t.do(clientv3.OpDelete(key))
	}
	return t
}

// deleteBelow deletes the keys that begin with one of these.
func (t *txn) deleteBelow(prefixes ...string) *txn {
	for _, prefix := range prefixes {
		t.do(clientv3.OpDelete(prefix, clientv3.WithPrefix()))
	}
	return t
}

func (t *txn) do(ops ...clientv3.Op) *txn {
	t.then = append(t.then, ops...)
	return t
}

// orGet reads if not all of when holds.
func (t *txn) orGet(ops ...clientv3.Op) *txn {
	t.orElse = ops
	return t
}

func (t *txn) commit(ctx context.Context) (*clientv3.TxnResponse, error) {
	if t.err != nil {
		return nil, t.err
	}
	return t.w.client.Txn(ctx).If(t.when...).Then(t.then...).Else(t.orElse...).Commit()
}

// try is commit for what is of no interest if it is not done.
func (t *txn) try(ctx context.Context) error {
	_, err := t.commit(ctx)
	return err
}

// isMissing holds if there is no such key.
func isMissing(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}

// isAt holds if the key was written last at rev; 0: never.
func isAt(key string, rev int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", rev)
}

// isLeased holds if the key has that lease.
func isLeased(key string, lease clientv3.LeaseID) clientv3.Cmp {
	return clientv3.Compare(clientv3.LeaseValue(key), "=", lease)
}

// hasKeys holds if there are keys that begin with prefix, or if there are none.
func hasKeys(prefix string, some bool) clientv3.Cmp {
	result := "="
	if some {
		result = ">"
	}
	return clientv3.Compare(clientv3.CreateRevision(prefix).WithPrefix(), result, 0)
}

// onlyKey is what an answer about one key says; nil: there is no such key. It tells whether a request has found what it did itself: etcd
// may have been asked twice. (etcd leaves the lease out where only keys are asked for.)
func onlyKey(answer *pb.ResponseOp) *mvccpb.KeyValue {
	if kvs := answer.GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// leaseOf is that of a key; 0: none, or there is no such key.
func leaseOf(kv *mvccpb.KeyValue) clientv3.LeaseID { return clientv3.LeaseID(kv.GetLease()) }

// matches reports whether etcd has that document under that lease.
func matches(kv *mvccpb.KeyValue, doc any, lease clientv3.LeaseID) bool {
	text, err := encode(string(kv.GetKey()), doc)
	return err == nil && kv != nil && string(kv.Value) == text && leaseOf(kv) == lease
}
