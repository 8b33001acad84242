package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

const (
	dialTimeout   = 5 * time.Second
	closeTimeout  = time.Second            // to close a client
	watchInterval = 200 * time.Millisecond // before the next try of a watch that has ended
	answerLimit   = 64 << 20               // bytes; more is not read
)

// Config says where an etcd is, and how to use it.
type Config struct {
	Endpoints      []string    // host:port
	TLS            *tls.Config // nil: none
	User, Password string      // empty: none
	Prefix         string      // of all keys that are used
}

// Connect does not wait for etcd, unless that has users.
func Connect(c Config) (store.Store, error) {
	e := &etcd{who: "this node", prefix: c.Prefix}
	if c.User != "" {
		e.who = "user " + c.User
	}
	config := clientv3.Config{
		Endpoints: c.Endpoints,
		TLS:       c.TLS,
		Username:  c.User, Password: c.Password,
		DialTimeout: dialTimeout,
		// A member whose machine has vanished is found out 3 s after a request, and one that is stopped after 13 s,
		// which is as soon as gRPC lets clients look. Until then a request that it gets is tried again, at the next
		// member.
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second, PermitWithoutStream: true,
		MaxCallRecvMsgSize: answerLimit,
		// What goes wrong comes back as an error.
		Logger: zap.NewNop(),
		// grpc's own pauses grow to two minutes, in which a lease runs out.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
			},
			MinConnectTimeout: 3 * time.Second,
		}), grpc.WithIdleTimeout(0), grpc.WithContextDialer(network.DialTCP)},
	}
	if len(c.Endpoints) > 1 {
		config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(limitTry))
	}
	var err error
	if e.client, err = clientv3.New(config); err != nil {
		return nil, e.explain(err)
	}
	return e, nil
}

// tries is how often a request is tried, one member of an etcd after the other. So etcd may carry it out more than
// once.
const tries = 3

// limitTry leaves time for other members, at which etcd's client tries a request when a try has been too slow.
func limitTry(
	ctx context.Context, method string, in, out any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
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
