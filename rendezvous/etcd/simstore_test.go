package etcd

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A simStore is an etcd in memory, as far as this package uses one: a store of all versions of its keys, with transactions, leases, and
// compaction. TestSimStore compares it with a real one.
type simStore struct {
	random    *rand.Rand // for the numbers of leases
	rev       int64
	compacted int64
	keys      []string // sorted
	values    map[string]*mvccpb.KeyValue
	history   []*clientv3.Event // in the order of revision
	leases    map[clientv3.LeaseID]*simLease
	changed   func(events []*clientv3.Event) // is told of each transaction that has written
}

type simLease struct {
	ttl, granted int64 // seconds
	expires      time.Time
	at           time.Time // when it was granted or renewed
}

func newSimStore(random *rand.Rand) *simStore {
	return &simStore{random: random, rev: 1, values: make(map[string]*mvccpb.KeyValue), leases: make(map[clientv3.LeaseID]*simLease), changed: func([]*clientv3.Event) {}}
}

// snapshot is the store as it is now, to go back to.
func (s *simStore) snapshot() *simStore {
	c := *s
	c.keys, c.history = slices.Clone(s.keys), slices.Clone(s.history)
	c.values, c.leases = make(map[string]*mvccpb.KeyValue), make(map[clientv3.LeaseID]*simLease)
	for k, v := range s.values {
		c.values[k] = v // which is never changed
	}
	for id, l := range s.leases {
		copied := *l
		c.leases[id] = &copied
	}
	return &c
}

// lookup returns the keys from first up to end; without an end, only first.
func (s *simStore) lookup(first, end []byte) (found []*mvccpb.KeyValue) {
	if len(end) == 0 {
		if kv := s.values[string(first)]; kv != nil {
			return []*mvccpb.KeyValue{kv}
		}
		return nil
	}
	i, _ := slices.BinarySearch(s.keys, string(first))
	for ; i < len(s.keys) && (string(end) == "\x00" || s.keys[i] < string(end)); i++ {
		found = append(found, s.values[s.keys[i]])
	}
	return found
}

// then returns what was there at a revision.
func (s *simStore) then(rev int64, first, end []byte) []*mvccpb.KeyValue {
	was := simStore{values: make(map[string]*mvccpb.KeyValue)}
	for _, e := range s.history {
		if e.Kv.ModRevision <= rev {
			was.put(e)
		}
	}
	return was.lookup(first, end)
}

func (s *simStore) put(e *clientv3.Event) {
	key := string(e.Kv.Key)
	i, is := slices.BinarySearch(s.keys, key)
	switch {
	case e.Type == clientv3.EventTypeDelete:
		if is {
			s.keys = slices.Delete(s.keys, i, i+1)
		}
		delete(s.values, key)
		return
	case !is:
		s.keys = slices.Insert(s.keys, i, key)
	}
	s.values[key] = e.Kv
}

func (s *simStore) header() *pb.ResponseHeader { return &pb.ResponseHeader{Revision: s.rev} }

func (s *simStore) get(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	kvs := s.lookup(r.Key, r.RangeEnd)
	if r.Revision > 0 && r.Revision < s.rev {
		if r.Revision < s.compacted {
			return nil, rpctypes.ErrCompacted
		}
		kvs = s.then(r.Revision, r.Key, r.RangeEnd)
	} else if r.Revision > s.rev {
		return nil, rpctypes.ErrFutureRev
	}
	answer := &pb.RangeResponse{Header: s.header(), Count: int64(len(kvs))}
	if r.CountOnly {
		return answer, nil
	}
	if r.SortTarget == pb.RangeRequest_MOD {
		kvs = slices.Clone(kvs)
		slices.SortStableFunc(kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) })
	}
	for _, kv := range kvs {
		if kv.ModRevision < r.MinModRevision || r.Limit > 0 && int64(len(answer.Kvs)) == r.Limit {
			continue
		}
		if r.KeysOnly {
			kv = &mvccpb.KeyValue{Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version}
		}
		answer.Kvs = append(answer.Kvs, kv)
	}
	return answer, nil
}

// holds reports whether a comparison holds for all keys that it is about.
func (s *simStore) holds(c *pb.Compare) bool {
	kvs := s.lookup(c.Key, c.RangeEnd)
	if len(kvs) == 0 {
		kvs = []*mvccpb.KeyValue{{}}
	}
	for _, kv := range kvs {
		var order int
		switch c.Target {
		case pb.Compare_CREATE:
			order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
		case pb.Compare_MOD:
			order = cmp.Compare(kv.ModRevision, c.GetModRevision())
		case pb.Compare_LEASE:
			order = cmp.Compare(kv.Lease, c.GetLease())
		default:
			panic("the simulated etcd does not compare " + c.Target.String())
		}
		var is bool
		switch c.Result {
		case pb.Compare_EQUAL:
			is = order == 0
		case pb.Compare_GREATER:
			is = order > 0
		case pb.Compare_LESS:
			is = order < 0
		case pb.Compare_NOT_EQUAL:
			is = order != 0
		}
		if !is {
			return false
		}
	}
	return true
}

// commit carries out a transaction as a whole, or not at all.
func (s *simStore) commit(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	ok := !slices.ContainsFunc(r.Compare, func(c *pb.Compare) bool { return !s.holds(c) })
	ops := r.Success
	if !ok {
		ops = r.Failure
	}
	for _, op := range ops {
		if put := op.GetRequestPut(); put != nil && put.Lease != 0 && s.leases[clientv3.LeaseID(put.Lease)] == nil {
			return nil, rpctypes.ErrLeaseNotFound
		}
	}
	answer := &pb.TxnResponse{Succeeded: ok, Responses: make([]*pb.ResponseOp, len(ops))}
	var events []*clientv3.Event
	for i, op := range ops {
		switch {
		case op.GetRequestRange() != nil:
			got, err := s.get(op.GetRequestRange())
			if err != nil {
				return nil, err
			}
			answer.Responses[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: got}}
		case op.GetRequestPut() != nil:
			events = append(events, s.write(op.GetRequestPut()))
			answer.Responses[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}}
		default:
			d := op.GetRequestDeleteRange()
			gone := s.remove(s.lookup(d.Key, d.RangeEnd))
			events = append(events, gone...)
			answer.Responses[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{Deleted: int64(len(gone))}}}
		}
	}
	s.wrote(events)
	answer.Header = s.header()
	return answer, nil
}

// write writes at the next revision.
func (s *simStore) write(r *pb.PutRequest) *clientv3.Event {
	kv := &mvccpb.KeyValue{Key: r.Key, Value: r.Value, Lease: r.Lease, CreateRevision: s.rev + 1, ModRevision: s.rev + 1, Version: 1}
	if before := s.values[string(r.Key)]; before != nil {
		kv.CreateRevision, kv.Version = before.CreateRevision, before.Version+1
	}
	e := &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv}
	s.put(e)
	return e
}

func (s *simStore) remove(kvs []*mvccpb.KeyValue) (events []*clientv3.Event) {
	for _, kv := range kvs {
		e := &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: kv.Key, ModRevision: s.rev + 1}}
		s.put(e)
		events = append(events, e)
	}
	return events
}

// wrote ends a transaction.
func (s *simStore) wrote(events []*clientv3.Event) {
	if len(events) == 0 {
		return
	}
	s.rev++
	s.history = append(s.history, events...)
	s.changed(events)
}

func (s *simStore) compact() { s.compacted = s.rev }

func (s *simStore) grant(now time.Time, ttl int64) clientv3.LeaseID {
	id := clientv3.LeaseID(s.random.Int64N(1<<40) + 1)
	s.leases[id] = &simLease{granted: ttl, ttl: ttl, at: now, expires: now.Add(time.Duration(ttl) * time.Second)}
	return id
}

func (s *simStore) renew(now time.Time, id clientv3.LeaseID) error {
	l := s.leases[id]
	if l == nil {
		return rpctypes.ErrLeaseNotFound
	}
	l.at, l.expires = now, now.Add(time.Duration(l.ttl)*time.Second)
	return nil
}

// revoke ends a lease, and deletes what is written under it.
func (s *simStore) revoke(id clientv3.LeaseID) error {
	if s.leases[id] == nil {
		return rpctypes.ErrLeaseNotFound
	}
	delete(s.leases, id)
	var gone []*mvccpb.KeyValue
	for _, key := range s.keys {
		if kv := s.values[key]; clientv3.LeaseID(kv.Lease) == id {
			gone = append(gone, kv)
		}
	}
	s.wrote(s.remove(gone))
	return nil
}

// expire ends the leases whose time is up.
func (s *simStore) expire(now time.Time) {
	var ids []clientv3.LeaseID
	for id, l := range s.leases {
		if !now.Before(l.expires) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		_ = s.revoke(id) // it is there
	}
}

// extend gives all leases their full time again, as an etcd does that has another leader.
func (s *simStore) extend(now time.Time) {
	for id := range s.leases {
		_ = s.renew(now, id) // it is there
	}
}

// A simClient is one request's way to the simulated etcd. Each call goes through ask, which takes its time, and may fail, or have the
// call carried out twice.
type simClient struct {
	clientv3.KV
	now func() time.Time
	ask func(ctx context.Context, what string, call func(*simStore) (any, error)) (any, error)
	// mutate changes transactions, to see what the simulation finds.
	mutate func(*pb.TxnRequest)
}

func newSimClient(now func() time.Time, ask func(context.Context, string, func(*simStore) (any, error)) (any, error), mutate func(*pb.TxnRequest)) *simClient {
	c := &simClient{now: now, ask: ask, mutate: mutate}
	c.KV = clientv3.NewKVFromKVClient(simKV{c}, nil)
	return c
}

// simKV is what etcd's client sends requests by.
type simKV struct{ c *simClient }

func answerOf[T any](answer any, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return answer.(T), nil
}

func (k simKV) Range(ctx context.Context, in *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return answerOf[*pb.RangeResponse](k.c.ask(ctx, "range", func(s *simStore) (any, error) { return s.get(in) }))
}

func (k simKV) Put(ctx context.Context, in *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	_, err := k.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: in}}}})
	return &pb.PutResponse{}, err
}

func (k simKV) DeleteRange(ctx context.Context, in *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	_, err := k.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: in}}}})
	return &pb.DeleteRangeResponse{}, err
}

func (k simKV) Txn(ctx context.Context, in *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	if k.c.mutate != nil {
		k.c.mutate(in)
	}
	return answerOf[*pb.TxnResponse](k.c.ask(ctx, "txn", func(s *simStore) (any, error) { return s.commit(in) }))
}

func (simKV) Compact(context.Context, *pb.CompactionRequest, ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return nil, status.Error(codes.Unimplemented, "nobody asks for it")
}

func (simKV) RangeStream(context.Context, *pb.RangeRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[pb.RangeStreamResponse], error) {
	return nil, status.Error(codes.Unimplemented, "nobody asks for it")
}

func (c *simClient) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return answerOf[*clientv3.LeaseGrantResponse](c.ask(ctx, "grant", func(s *simStore) (any, error) {
		return &clientv3.LeaseGrantResponse{ID: s.grant(c.now(), ttl), TTL: ttl}, nil
	}))
}

func (c *simClient) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return answerOf[*clientv3.LeaseRevokeResponse](c.ask(ctx, "revoke", func(s *simStore) (any, error) {
		return new(clientv3.LeaseRevokeResponse), s.revoke(id)
	}))
}

func (c *simClient) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return answerOf[*clientv3.LeaseKeepAliveResponse](c.ask(ctx, "renew", func(s *simStore) (any, error) {
		return &clientv3.LeaseKeepAliveResponse{ID: id}, s.renew(c.now(), id)
	}))
}

func (c *simClient) TimeToLive(ctx context.Context, id clientv3.LeaseID, _ ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return answerOf[*clientv3.LeaseTimeToLiveResponse](c.ask(ctx, "ttl", func(s *simStore) (any, error) {
		l := s.leases[id]
		if l == nil {
			return &clientv3.LeaseTimeToLiveResponse{ID: id, TTL: -1}, nil
		}
		return &clientv3.LeaseTimeToLiveResponse{ID: id, TTL: int64(l.expires.Sub(c.now()) / time.Second), GrantedTTL: l.granted}, nil
	}))
}

// inRange reports whether a key is from first up to end.
func inRange(key []byte, first, end string) bool {
	return bytes.Compare(key, []byte(first)) >= 0 && bytes.Compare(key, []byte(end)) < 0
}
