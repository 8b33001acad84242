package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// A router sends each request to one of several members of an etcd, the one that answered last. A member that does not
// answer soon may be stopped or cut off, or may not know yet that the etcd has another leader. So after a delay the router
// asks the others too, and later all of them again; the first answer counts. etcd may therefore carry out a request twice,
// as it may when one is repeated that has timed out.
//
// Watches are where requests are answered: when another member answers, they move there.
type router struct {
	members []*grpc.ClientConn
	delay   time.Duration // before the others are asked

	mu         sync.Mutex
	last       int             // the member that answered last
	streams    context.Context // of all that are open; it ends when another member answers
	endStreams context.CancelFunc
}

// The delay depends on how soon a silent node is to be noticed, within these limits.
const (
	minDelay = 200 * time.Millisecond
	maxDelay = time.Second
)

// route makes a client send its requests through a router. Closing the client closes the router.
func route(client *clientv3.Client, ttl time.Duration) error {
	r := &router{
		delay: min(max(ttl/10, minDelay), maxDelay),
		last:  rand.IntN(len(client.Endpoints())), // so that not all nodes ask the same one
	}
	r.streams, r.endStreams = context.WithCancel(context.Background())
	for _, endpoint := range client.Endpoints() {
		member, err := client.Dial(endpoint)
		if err != nil {
			return errors.Join(err, r.close())
		}
		member.Connect() // before it is needed; and a host that ends waits for those who are connected
		r.members = append(r.members, member)
	}
	client.KV = clientv3.NewKVFromKVClient(pb.NewKVClient(r), client)
	client.Auth = clientv3.NewAuthFromAuthClient(pb.NewAuthClient(r), client)
	client.Watcher = clientv3.NewWatchFromWatchClient(pb.NewWatchClient(r), client)
	client.Lease = &routedLease{clientv3.NewLeaseFromLeaseClient(pb.NewLeaseClient(r), client, callTimeout), r}
	return nil
}

func (r *router) close() (err error) {
	for _, m := range r.members {
		err = errors.Join(err, m.Close())
	}
	return err
}

// Invoke makes a request with one answer.
func (r *router) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	to, ok := reply.(proto.Message)
	if !ok {
		return fmt.Errorf("%s: the answer is to be a %T, which is no protobuf message", method, reply)
	}
	answer, err := ask(ctx, r, func(ctx context.Context, member *grpc.ClientConn) (proto.Message, error) {
		own := to.ProtoReflect().New().Interface()
		return own, member.Invoke(ctx, method, args, own, append(slices.Clip(opts), impatient)...)
	})
	if err != nil {
		return err
	}
	proto.Merge(to, answer)
	return nil
}

// impatient is for requests that are not to wait for a member that refuses connections, as etcd's client would let them.
var impatient = grpc.WaitForReady(false)

// ask returns the first answer of a member. It asks until ctx ends: what no member can answer now, one may soon, such as when
// they have elected another leader. Then it fails with the last reason, if there is one.
func ask[T any](ctx context.Context, r *router, call func(context.Context, *grpc.ClientConn) (T, error)) (T, error) {
	type result struct {
		member int
		value  T
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also what is still open
	results := make(chan result)
	asked, open := make([]bool, len(r.members)), 0
	start := func(member int) {
		asked[member] = true
		open++
		go func() {
			value, err := call(ctx, r.members[member])
			select {
			case results <- result{member, value, err}:
			case <-ctx.Done():
			}
		}()
	}
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	start(last)
	wait := r.delay
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var failure error
	for {
		select {
		case got := <-results:
			open--
			if !slices.Contains(unavailable, status.Code(got.err)) {
				r.answered(got.member)
				return got.value, got.err
			}
			failure = got.err
			if next := slices.Index(asked, false); next >= 0 {
				start(next)
			} else if open == 0 { // nobody is burdened: look again soon
				wait = r.delay / 2
				timer.Reset(r.delay)
			}
		case <-timer.C:
			again := !slices.Contains(asked, false)
			for member := range r.members {
				if again || !asked[member] {
					start(member)
				}
			}
			wait *= 2
			timer.Reset(wait)
		case <-ctx.Done():
			var none T
			return none, cmp.Or(failure, status.FromContextError(ctx.Err()).Err())
		}
	}
}

// A request that fails with one of these has failed at one member, which says nothing of the others.
var unavailable = []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unimplemented}

// answered takes note that a member has, and moves the streams of the others there.
func (r *router) answered(member int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != member {
		r.endStreams()
		r.last = member
		r.streams, r.endStreams = context.WithCancel(context.Background())
	}
}

// A routedStream ends when it has to begin anew at another member.
type routedStream struct {
	grpc.ClientStream
	ctx    context.Context
	cancel context.CancelCauseFunc
}

var errMoved = errors.New("another member of the etcd answers")

// NewStream begins one at the member that answered last.
func (r *router) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s := new(routedStream)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	r.mu.Lock()
	member := r.members[r.last]
	forget := context.AfterFunc(r.streams, func() { s.cancel(errMoved) })
	r.mu.Unlock()
	context.AfterFunc(s.ctx, func() { forget() })
	var err error
	if s.ClientStream, err = member.NewStream(s.ctx, desc, method, opts...); err != nil {
		return nil, s.end(err)
	}
	return s, nil
}

// RecvMsg receives the next message.
func (s *routedStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return s.end(err)
	}
	return nil
}

// end returns why the stream has ended. One that has moved is to be begun again.
func (s *routedStream) end(err error) error {
	if errors.Is(context.Cause(s.ctx), errMoved) {
		err = status.Error(codes.Unavailable, errMoved.Error())
	}
	s.cancel(err)
	return err
}

// A routedLease asks any member to keep a lease.
type routedLease struct {
	clientv3.Lease
	router *router
}

// KeepAliveOnce fails with rpctypes.ErrLeaseNotFound if there is no such lease any more.
func (l *routedLease) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	ctx = clientv3.WithRequireLeader(ctx)
	answer, err := ask(ctx, l.router, func(ctx context.Context, member *grpc.ClientConn) (*pb.LeaseKeepAliveResponse, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := pb.NewLeaseClient(member).LeaseKeepAlive(ctx, impatient)
		if err != nil {
			return nil, err
		}
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
			return nil, err
		}
		return stream.Recv()
	})
	switch {
	case err != nil:
		return nil, clientv3.ContextError(ctx, err)
	case answer.TTL <= 0:
		return nil, rpctypes.ErrLeaseNotFound
	}
	return &clientv3.LeaseKeepAliveResponse{ResponseHeader: answer.GetHeader(), ID: clientv3.LeaseID(answer.ID), TTL: answer.TTL}, nil
}

// Close closes the router with the client.
func (l *routedLease) Close() error { return errors.Join(l.Lease.Close(), l.router.close()) }
