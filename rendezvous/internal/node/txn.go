package node

import (
	"cmp"
	"context"

	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A txn is a transaction in the making.
type txn struct {
	store.Txn
	w   *writer
	err error // why a document cannot be written
}

func (w *writer) when(all ...store.Cond) *txn { return &txn{w: w, Txn: store.Txn{When: all}} }

func (t *txn) put(key string, doc any, lease store.Lease) *txn {
	text, err := encode(key, doc)
	t.err = cmp.Or(t.err, err)
	t.Puts = append(t.Puts, store.Put{Key: key, Value: text, Lease: lease})
	return t
}

func (t *txn) delete(keys ...string) *txn {
	for _, key := range keys {
		t.Deletes = append(t.Deletes, store.Key(key))
	}
	return t
}

// deleteBelow deletes the keys that begin with one of these.
func (t *txn) deleteBelow(prefixes ...string) *txn {
	for _, prefix := range prefixes {
		t.Deletes = append(t.Deletes, store.Below(prefix))
	}
	return t
}

// orGet reads if not all conditions hold.
func (t *txn) orGet(queries ...store.Query) *txn {
	t.Else = queries
	return t
}

func (t *txn) commit(ctx context.Context) (store.Answer, error) {
	if t.err != nil {
		return store.Answer{}, t.err
	}
	return t.w.store.Commit(ctx, t.Txn)
}

// try is commit for what is of no interest if it is not done.
func (t *txn) try(ctx context.Context) error {
	_, err := t.commit(ctx)
	return err
}

// isAt holds if the key was written last at rev; 0: never.
func isAt(key string, rev int64) store.Cond {
	return store.Cond{Range: store.Key(key), Kind: store.IsWritten, Value: rev}
}

// isMissing holds if there is no such key.
func isMissing(key string) store.Cond { return isAt(key, 0) }

// isLeased holds if the key has that lease.
func isLeased(key string, lease store.Lease) store.Cond {
	return store.Cond{Range: store.Key(key), Kind: store.IsLeased, Value: int64(lease)}
}

// hasKeys holds if there are keys that begin with prefix.
func hasKeys(prefix string) store.Cond {
	return store.Cond{Range: store.Below(prefix), Kind: store.Exists}
}

// hasNoKeys holds if there are none.
func hasNoKeys(prefix string) store.Cond { return store.Cond{Range: store.Below(prefix)} }

// one asks for a key, and below for those that begin with prefix.
func one(key string) store.Query      { return store.Query{Range: store.Key(key)} }
func below(prefix string) store.Query { return store.Query{Range: store.Below(prefix)} }

// some asks whether there are any.
func some(prefix string) store.Query {
	return store.Query{Range: store.Below(prefix), Limit: 1, OnlyKeys: true}
}

// matches reports whether a key has that document under that lease. It tells whether a request has found what it did itself: it may have
// been carried out twice.
func matches(kv store.KV, doc any, lease store.Lease) bool {
	text, err := encode(kv.Key, doc)
	return err == nil && kv.Written > 0 && kv.Value == text && kv.Lease == lease
}
