// Package etcdstore keeps a [comm.Store] in etcd, for ranks that meet where their job already has one.
//
// It is no part of package comm, whose workers must not pay for an etcd client unless they want one:
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"etcd.example:2379"}})
//	...
//	world, err := comm.Init(ctx, comm.WithStore(etcdstore.New(client, "jobs/17/")))
//
// Who uses a store with the same prefix later finds what is there; nothing is removed by itself.
package etcdstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/comm"
)

// New returns the store whose keys are those of etcd that begin with prefix. The client stays the caller's to close.
func New(client *clientv3.Client, prefix string) comm.Store {
	values := prefix + "values/"
	return comm.NewPrefixStore(&store{client: client, values: values, chunks: prefix + "chunks/"}, values)
}

// A store has the keys of [New]'s as they are in etcd. Its own errors and its end are the prefix store's to make.
type store struct {
	client *clientv3.Client
	values string // before every key
	chunks string // before the pieces of values that are too long for one
}

// errNotANumber is what comm's own stores say as well.
var errNotANumber = errors.New("the value is not a number")

// Set implements [comm.Store].
func (s *store) Set(ctx context.Context, key string, value []byte) error {
	return s.update(ctx, "set", key, func(*record) ([]byte, change, error) { return value, put, nil }, value)
}

// Add implements [comm.Store].
func (s *store) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	err = s.update(ctx, "add", key, func(r *record) ([]byte, change, error) {
		sum = n
		if r.exists() {
			text, err := s.value(ctx, r)
			if err != nil {
				return nil, keep, err
			}
			now, err := strconv.ParseInt(string(text), 10, 64)
			switch {
			case err != nil:
				return nil, keep, errNotANumber
			case n > 0 && now > math.MaxInt64-n, n < 0 && now < math.MinInt64-n:
				return nil, keep, errors.New("the sum does not fit in 64 bits")
			}
			sum += now
		}
		return strconv.AppendInt(nil, sum, 10), put, nil
	})
	if err != nil {
		return 0, err
	}
	return sum, nil
}

// CompareAndSwap implements [comm.Store].
func (s *store) CompareAndSwap(ctx context.Context, key string, old, new []byte) (now []byte, err error) {
	err = s.update(ctx, "compare and swap", key, func(r *record) (_ []byte, _ change, err error) {
		switch now, err = s.value(ctx, r); {
		case err != nil:
			return nil, keep, err
		case bytes.Equal(now, old): // a missing key holds nothing
			now = bytes.Clone(new)
			return new, put, nil
		case !r.exists():
			now = bytes.Clone(old)
		}
		return nil, keep, nil
	}, old, new)
	if err != nil {
		return nil, err
	}
	return now, nil
}

// Delete implements [comm.Store].
func (s *store) Delete(ctx context.Context, key string) (existed bool, err error) {
	err = s.update(ctx, "delete", key, func(r *record) ([]byte, change, error) {
		if existed = r.exists(); existed {
			return nil, remove, nil
		}
		return nil, keep, nil
	})
	return existed && err == nil, err
}

// Close implements [comm.Store].
func (s *store) Close() error { return nil }

// A change is what an update does to a key.
type change int

const (
	keep change = iota
	put
	remove
)

// update does to key what decide makes of its record, and asks again when somebody else was faster. sizes are checked first.
func (s *store) update(ctx context.Context, op, key string, decide func(*record) ([]byte, change, error), sizes ...[]byte) error {
	err := ctx.Err()
	for _, v := range sizes {
		if len(v) > comm.MaxStoreValue {
			return fmt.Errorf("store: value of %d bytes for key %q: the most is %d", len(v), short(key), comm.MaxStoreValue)
		}
	}
	for done := false; err == nil && !done; {
		done, err = s.try(ctx, key, decide)
	}
	if err != nil {
		return fmt.Errorf("store: %s %q: %w", op, short(key), ended(ctx, err))
	}
	return nil
}

// try is one attempt of an update.
func (s *store) try(ctx context.Context, key string, decide func(*record) ([]byte, change, error)) (done bool, err error) {
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
	then := s.forget(r)
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

// ended is the context's error if that is why a request failed, else the request's.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// short keeps a long key from filling the screen.
func short(key string) string {
	const most = 100
	if len(key) <= most {
		return key
	}
	return key[:most] + "..."
}
