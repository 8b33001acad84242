// Package etcdstore is a [store.Store] over etcd.
package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// etcd is a store.Store.
type etcd struct {
	client *clientv3.Client
	who    string // uses it, in the words of errors
	prefix string // of the keys that it uses
}

// Read asks for what all members agree on.
func (e *etcd) Read(ctx context.Context, queries ...store.Query) (store.Answer, error) {
	answer, err := e.client.Txn(ctx).Then(gets(queries)...).Commit()
	return e.answer(answer, err)
}

// Commit ends a lease in a request of its own.
func (e *etcd) Commit(ctx context.Context, t store.Txn) (a store.Answer, err error) {
	if a.Done = t.End != 0 && len(t.When)+len(t.Deletes)+len(t.Puts) == 0; !a.Done {
		a, err = e.answer(e.client.Txn(ctx).If(compares(t.When)...).Then(writes(t)...).Else(gets(t.Else)...).Commit())
	}
	if err == nil && a.Done && t.End != 0 {
		if _, err = e.client.Revoke(ctx, clientv3.LeaseID(t.End)); errors.Is(err, rpctypes.ErrLeaseNotFound) {
			err = nil
		}
		err = e.explain(err)
	}
	return a, err
}

// Keep leaves time for other members when it renews a lease, as limitTry does for other calls.
func (e *etcd) Keep(ctx context.Context, id store.Lease, ttl time.Duration) (store.Lease, time.Duration, error) {
	switch {
	case id == 0:
		granted, err := e.client.Grant(ctx, max(1, int64(ttl.Seconds()+0.5)))
		if err != nil {
			return 0, 0, e.explain(err)
		}
		return store.Lease(granted.ID), time.Duration(granted.TTL) * time.Second, nil
	case ttl == 0:
		left, err := e.client.TimeToLive(ctx, clientv3.LeaseID(id))
		switch {
		case err != nil:
			return 0, 0, e.explain(err)
		case left.TTL < 0:
			return 0, 0, store.ErrNoLease
		}
		return id, time.Duration(left.TTL) * time.Second, nil
	}
	return e.renew(ctx, id)
}

func (e *etcd) renew(ctx context.Context, id store.Lease) (store.Lease, time.Duration, error) {
	limit := time.Hour
	if end, limited := ctx.Deadline(); limited {
		limit = time.Until(end) / tries
	}
	var err error
	for range tries {
		try, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), limit)
		var renewed *clientv3.LeaseKeepAliveResponse
		renewed, err = e.client.KeepAliveOnce(try, clientv3.LeaseID(id))
		cancel()
		switch {
		case err == nil:
			return id, time.Duration(renewed.TTL) * time.Second, nil
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return 0, 0, store.ErrNoLease
		}
	}
	return 0, 0, e.explain(err)
}

// Watch begins again, whatever ends the watch: a refusal, a compaction, a member of etcd without a leader.
func (e *etcd) Watch(ctx context.Context, keys store.Range, changed func([]store.Event)) {
	options := []clientv3.OpOption{clientv3.WithCreatedNotify()}
	if keys.End != "" {
		options = append(options, clientv3.WithRange(keys.End))
	}
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		for answer := range e.client.Watch(attempt, keys.First, options...) {
			events := make([]store.Event, len(answer.Events))
			for i, is := range answer.Events {
				events[i] = store.Event{KV: kvOf(is.Kv), Deleted: is.Type == clientv3.EventTypeDelete}
			}
			changed(events)
		}
		cancel()
		network.Pause(ctx, watchInterval)
	}
}

// Close closes the client.
func (e *etcd) Close() error { return closeClient(e.client) }

func (e *etcd) answer(from *clientv3.TxnResponse, err error) (a store.Answer, _ error) {
	if err != nil {
		return a, e.explain(err)
	}
	a = store.Answer{Rev: from.Header.Revision, Done: from.Succeeded}
	for _, r := range from.Responses {
		if got, ok := r.Response.(*pb.ResponseOp_ResponseRange); ok {
			found := store.Found{Count: int(got.ResponseRange.Count)}
			for _, kv := range got.ResponseRange.Kvs {
				found.KVs = append(found.KVs, kvOf(kv))
			}
			a.Found = append(a.Found, found)
		}
	}
	return a, nil
}

func kvOf(kv *mvccpb.KeyValue) store.KV {
	return store.KV{
		Key: string(kv.Key), Value: string(kv.Value), Created: kv.CreateRevision, Written: kv.ModRevision, Lease: store.Lease(kv.Lease),
	}
}

func gets(queries []store.Query) (ops []clientv3.Op) {
	for _, q := range queries {
		options := append(span(q.Range), clientv3.WithMinModRev(q.Since), clientv3.WithLimit(int64(q.Limit)))
		if q.OnlyKeys {
			options = append(options, clientv3.WithKeysOnly())
		}
		ops = append(ops, clientv3.OpGet(q.First, options...))
	}
	return ops
}

func writes(t store.Txn) (ops []clientv3.Op) {
	for _, r := range t.Deletes {
		ops = append(ops, clientv3.OpDelete(r.First, span(r)...))
	}
	for _, p := range t.Puts {
		ops = append(ops, clientv3.OpPut(p.Key, p.Value, clientv3.WithLease(clientv3.LeaseID(p.Lease))))
	}
	return ops
}

func span(r store.Range) []clientv3.OpOption {
	if r.End == "" {
		return nil
	}
	return []clientv3.OpOption{clientv3.WithRange(r.End)}
}

func compares(conds []store.Cond) (all []clientv3.Cmp) {
	for _, c := range conds {
		var is clientv3.Cmp
		switch c.Kind {
		case store.IsWritten:
			is = clientv3.Compare(clientv3.ModRevision(c.First), "=", c.Value)
		case store.IsLeased:
			is = clientv3.Compare(clientv3.LeaseValue(c.First), "=", clientv3.LeaseID(c.Value))
		case store.Exists:
			is = clientv3.Compare(clientv3.ModRevision(c.First), ">", 0)
		}
		if c.End != "" {
			is = is.WithRange(c.End)
		}
		all = append(all, is)
	}
	return all
}

// explain turns an error of etcd's client into one that package store describes.
func (e *etcd) explain(err error) error {
	var answer rpctypes.EtcdError
	final := []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition}
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return store.ErrNoLease
	case !errors.As(err, &answer) || !slices.Contains(final, answer.Code()) || errors.Is(err, rpctypes.ErrInvalidAuthToken):
		return err
	case !errors.Is(err, rpctypes.ErrPermissionDenied):
		return &store.RefusedError{Err: err}
	}
	return &store.RefusedError{Err: fmt.Errorf("etcd does not let %s read and write the keys below %s: give it a role that may "+
		"(etcdctl role grant-permission ROLE --prefix=true readwrite %s), or another etcd_prefix= in --rdzv-conf", e.who, e.prefix, e.prefix)}
}
