// Package etcdstore keeps a [store.Store] in etcd, for ranks that meet where their job already has one.
//
// It is a package of its own, so that only a worker that uses it links an etcd client:
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"etcd.example:2379"}})
//	...
//	world, err := comm.Init(ctx, comm.WithStore(etcdstore.New(client, "jobs/17/")))
//
// A later store with the same prefix finds what is there. Nothing is removed by itself.
package etcdstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/comm/store"
)

// New returns a store whose keys in etcd begin with prefix. The caller closes the client.
func New(client *clientv3.Client, prefix string) store.Store {
	values := prefix + "values/"
	return store.NewPrefix(&etcdStore{client: client, values: values, chunks: prefix + "chunks/"}, values)
}

// An etcdStore uses the keys as they are in etcd. The prefix store around it checks the caller's keys, and implements Close.
type etcdStore struct {
	client *clientv3.Client
	values string // before every key
	chunks string // before the chunks of values that are too long for one key
}

// Set implements [store.Store].
func (s *etcdStore) Set(ctx context.Context, key string, value []byte) error {
	return s.update(ctx, "set", key, func(*record) ([]byte, change, error) { return value, put, nil }, value)
}

// Add implements [store.Store].
func (s *etcdStore) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	err = s.update(ctx, "add", key, func(r *record) ([]byte, change, error) {
		value, err := s.value(ctx, r)
		if err == nil {
			sum, err = store.Sum(value, r.exists(), n)
		}
		if err != nil {
			return nil, keep, err
		}
		return store.FormatNumber(sum), put, nil
	})
	if err != nil {
		return 0, err
	}
	return sum, nil
}

// CompareAndSwap implements [store.Store].
func (s *etcdStore) CompareAndSwap(ctx context.Context, key string, old, new []byte) (result []byte, err error) {
	err = s.update(ctx, "compare and swap", key, func(r *record) ([]byte, change, error) {
		value, err := s.value(ctx, r)
		if err != nil {
			return nil, keep, err
		}
		var swap bool
		if result, swap = store.Swap(value, r.exists(), old, new); !swap {
			return nil, keep, nil
		}
		return new, put, nil
	}, old, new)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(result), nil
}

// Delete implements [store.Store].
func (s *etcdStore) Delete(ctx context.Context, key string) (existed bool, err error) {
	err = s.update(ctx, "delete", key, func(r *record) ([]byte, change, error) {
		if existed = r.exists(); existed {
			return nil, remove, nil
		}
		return nil, keep, nil
	})
	return existed && err == nil, err
}

// Close implements [store.Store].
func (s *etcdStore) Close() error { return nil }

// A change is what an update does to a key.
type change int

const (
	keep change = iota
	put
	remove
)

// update makes the change of key that decide returns for its record. It calls decide again if another client has changed the
// record meanwhile. values are the arguments of the call.
func (s *etcdStore) update(ctx context.Context, op, key string, decide func(*record) ([]byte, change, error), values ...[]byte) error {
	if err := store.CheckValues(key, values...); err != nil {
		return err
	}
	err := ctx.Err()
	for done := false; err == nil && !done; {
		done, err = s.try(ctx, key, decide)
	}
	if err != nil {
		return store.CallError(op, key, cmp.Or(ctx.Err(), err))
	}
	return nil
}

// try is one attempt of update. It is not done if another client has changed the key meanwhile.
func (s *etcdStore) try(ctx context.Context, key string, decide func(*record) ([]byte, change, error)) (done bool, err error) {
	r, err := s.read(ctx, key)
	if err != nil {
		return false, err
	}
	value, change, err := decide(r)
	if errors.Is(err, errReplaced) {
		return false, nil
	}
	if err != nil || change == keep {
		return true, err
	}
	then := s.deletion(r)
	var next *record
	if change == put {
		if next, err = s.upload(ctx, value); err != nil {
			return false, err
		}
		then = append(then, clientv3.OpPut(key, string(next.text)))
	} else {
		then = append(then, clientv3.OpDelete(key))
	}
	answer, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", r.revision)).Then(then...).Commit()
	if err != nil {
		return false, err
	}
	if !answer.Succeeded && next != nil {
		return false, s.discard(ctx, next)
	}
	return answer.Succeeded, nil
}
