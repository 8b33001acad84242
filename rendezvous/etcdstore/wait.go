package etcdstore

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/comm/store"
)

// Get implements [store.Store].
func (s *etcdStore) Get(ctx context.Context, key string) ([]byte, error) {
	for {
		r, err := s.read(ctx, key)
		var value []byte
		if err == nil {
			value, err = s.value(ctx, r)
		}
		switch {
		case ctx.Err() != nil:
			return nil, &store.MissingKeysError{Keys: []string{key}, Err: ctx.Err()}
		case errors.Is(err, errReplaced):
			continue
		case err != nil:
			return nil, store.CallError("get", key, err)
		case r.exists():
			return value, nil
		}
		if err := s.Wait(ctx, key); err != nil {
			return nil, err
		}
	}
}

// Wait implements [store.Store].
func (s *etcdStore) Wait(ctx context.Context, keys ...string) error {
	missing, since, err := s.missing(ctx, keys)
	for err == nil && len(missing) > 0 {
		missing, err = s.watch(ctx, missing, since)
		if errors.Is(err, errCompacted) {
			missing, since, err = s.missing(ctx, missing)
		}
	}
	switch {
	case ctx.Err() != nil && (err != nil || len(missing) > 0):
		return &store.MissingKeysError{Keys: missing, Err: ctx.Err()}
	case err != nil:
		return store.CallError("wait for", keys[0], err)
	}
	return nil
}

// missing returns the keys that do not exist, and the first revision at which one may appear.
func (s *etcdStore) missing(ctx context.Context, keys []string) (missing []string, since int64, err error) {
	const most = 100 // operations of one transaction; etcd takes 128
	if ctx.Err() != nil {
		return keys, 0, ctx.Err()
	}
	for some := range slices.Chunk(keys, most) {
		var ask []clientv3.Op
		for _, key := range some {
			ask = append(ask, clientv3.OpGet(key, clientv3.WithKeysOnly()))
		}
		answer, err := s.client.Txn(ctx).Then(ask...).Commit()
		if err != nil {
			return keys, 0, err
		}
		if since == 0 {
			since = answer.Header.Revision + 1
		}
		for i, r := range answer.Responses {
			if len(r.GetResponseRange().Kvs) == 0 {
				missing = append(missing, some[i])
			}
		}
	}
	return missing, since, nil
}

// errCompacted says that etcd has dropped the revisions that a watch was to begin with.
var errCompacted = errors.New("the revision has been compacted")

// watch waits until the keys have been set, at revision since or later. It returns those that have not.
func (s *etcdStore) watch(ctx context.Context, keys []string, since int64) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched, options := keys[0], []clientv3.OpOption{clientv3.WithRev(since), clientv3.WithFilterDelete()}
	if len(keys) > 1 {
		watched, options = s.values, append(options, clientv3.WithPrefix())
	}
	left := slices.Clone(keys)
	for news := range s.client.Watch(ctx, watched, options...) {
		switch {
		case news.CompactRevision > 0:
			return left, errCompacted
		case news.Err() != nil:
			return left, news.Err()
		}
		for _, e := range news.Events {
			left = slices.DeleteFunc(left, func(key string) bool { return key == string(e.Kv.Key) })
		}
		if len(left) == 0 {
			return nil, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return left, err
	}
	return left, errors.New("etcd has ended the watch")
}
