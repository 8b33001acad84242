package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"

	"github.com/gorun/gorun/env/addr"
)

const (
	callTimeout   = 5 * time.Second        // of one request
	closeTimeout  = time.Second            // to close a client
	retryInterval = 200 * time.Millisecond // before the next try of a request that has failed
	answerLimit   = 64 << 20               // bytes; more is not read
)

// connect makes the client of a Config that has none. It does not wait for etcd, unless that has users.
func connect(c *Config) (*clientv3.Client, error) {
	endpoints := make([]string, len(c.Endpoints))
	for i, e := range c.Endpoints {
		endpoints[i] = e.String()
	}
	config := clientv3.Config{
		Endpoints: endpoints,
		TLS:       c.TLS,
		Username:  c.User, Password: c.Password,
		DialTimeout: callTimeout,
		// A member whose machine has vanished is found out 3 s after a request, and one that is stopped after 13 s,
		// which is as soon as gRPC lets clients look. Until then a request that it gets is tried again, at the next
		// member.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second, PermitWithoutStream: true,
		MaxCallRecvMsgSize: answerLimit,
		// What goes wrong comes back as an error.
		Logger: zap.NewNop(),
		// grpc's own pauses grow to two minutes, in which a lease runs out.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}), grpc.WithIdleTimeout(0), grpc.WithContextDialer(addr.DialTCP)},
	}
	if len(endpoints) > 1 {
		config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(limitTry))
	}
	return clientv3.New(config)
}

// tries is how often a request is tried, one member of an etcd after the other. So etcd may carry it out more than
// once.
const tries = 3

// limitTry leaves time for other members, at which etcd's client tries a request when a try has been too slow.
func limitTry(ctx context.Context, method string, in, out any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if end, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/tries)
		defer cancel()
	}
	return invoke(ctx, method, in, out, cc, opts...)
}

// closeClient closes a client. In etcd's v3.7.3, Client.Close may wait for ever if it is called when a watch has just
// been refused. After closeTimeout, closeClient closes the connections all the same.
func closeClient(client *clientv3.Client) error {
	closed := make(chan error, 1)
	go func() { closed <- client.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTimeout):
		return errors.Join(client.Lease.Close(), client.ActiveConnection().Close())
	}
}

// isRefusal reports whether etcd has answered and would answer the same again.
func isRefusal(err error) bool {
	var answer rpctypes.EtcdError
	final := []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition}
	return errors.As(err, &answer) && slices.Contains(final, answer.Code()) && !errors.Is(err, rpctypes.ErrInvalidAuthToken)
}

// refusal says what to do about one.
func (c *Config) refusal(err error) error {
	if !errors.Is(err, rpctypes.ErrPermissionDenied) {
		return fmt.Errorf("etcd: %w", err)
	}
	who := "this node"
	if c.User != "" {
		who = "user " + c.User
	}
	return fmt.Errorf("etcd does not let %s read and write the keys below %s: give it a role that may "+
		"(etcdctl role grant-permission ROLE --prefix=true readwrite %s), or another etcd_prefix= in --rdzv-conf", who, c.Prefix, c.Prefix)
}

// pause returns early if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
