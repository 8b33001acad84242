package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/rendezvous"
)

const (
	stopTimeout      = 8 * time.Second // for etcd to stop; it may just be asking four others for their version, who have vanished: 1.5 s each
	handshake        = 5 * time.Second // for a connection to prove itself
	keepaliveTime    = 6 * time.Second // after which the server pings a silent client; those of agents ping earlier
	keepaliveTimeout = 3 * time.Second // for its answer
)

// A Server is a member of an etcd cluster, most often its only one. Its methods may be called from several goroutines.
type Server struct {
	config  Config
	name    string // no other server has it
	dir     *directory
	own     *auth.Identity // nil: there is no secret
	member  *embed.Etcd    // nil: not started
	peers   *http.Server   // nil: there are none, or not started
	grpc    *grpc.Server   // nil: not started
	serving sync.WaitGroup
	clients *clients

	// Of one that has other members:
	clientTLS  *tls.Config // nil: none
	peerClient *http.Client
	peer       atomic.Pointer[http.Handler] // this server's member as the others see it; nil: no member yet
	founds     atomic.Bool                  // it has no data, and is no member yet
	learner    uint64                       // the member as which it was added to the cluster; 0: none

	running context.Context         // until the server fails or is closed
	fail    context.CancelCauseFunc // with why; the first reason counts
	needed  bool                    // clients were connected when it was closed
	once    sync.Once
	closed  error // what Close returns
}

// Start returns a server that serves: alone at once, of three when two have found each other, for which it waits until
// ctx ends. The listeners are the server's, even if Start fails.
func Start(ctx context.Context, config Config) (*Server, error) {
	s := newServer(config)
	if err := s.start(ctx); err != nil {
		for _, l := range config.Listeners {
			_ = l.Close() // gRPC may have closed it
		}
		return nil, errors.Join(err, s.stop())
	}
	s.serving.Go(s.watch)
	return s, nil
}

func newServer(config Config) *Server {
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if config.Waiting == nil {
		config.Waiting = func(string) {}
	}
	s := &Server{config: config, name: rand.Text(), clients: newClients()}
	s.running, s.fail = context.WithCancelCause(context.Background())
	return s
}

func (s *Server) start(ctx context.Context) (err error) {
	if err = s.config.check(); err != nil {
		return err
	}
	if s.dir, err = openDirectory(&s.config); err != nil {
		return err
	}
	if len(s.config.Secret) > 0 {
		if s.own, err = auth.NewIdentity(s.config.Secret, realm); err != nil {
			return err
		}
	}
	if err = s.startMember(ctx); err != nil {
		return fmt.Errorf("the rendezvous at %s: %w", s.config.Self, err)
	}
	return s.serve()
}

// serve lets clients in. etcd's own way of doing so has a multiplexer that waits for connections which say nothing.
func (s *Server) serve() error {
	credentials, err := s.config.serverTLS(s.own)
	if err != nil {
		return err
	}
	s.grpc = v3rpc.Server(s.member.Server, nil, nil,
		grpc.Creds(clientCredentials(credentials)),
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}), // the server does not wait for clients that have vanished
		grpc.WaitForHandlers(true),
	)
	for _, l := range s.config.Listeners {
		l := clientListener{s.admissions(l, "clients"), s.clients}
		s.serving.Go(func() {
			if err := s.grpc.Serve(l); err != nil {
				s.fail(err)
			}
		})
	}
	return nil
}

// watch waits for failures, and makes new certificates before the old ones expire.
func (s *Server) watch() {
	renew := time.NewTicker(auth.Renewal)
	defer renew.Stop()
	for {
		select {
		case <-s.running.Done():
			return
		case <-s.member.Server.StopNotify():
			s.fail(errStopped)
		case now := <-renew.C:
			if s.own == nil || !s.config.several() {
				continue
			}
			if _, err := s.dir.writeTLS(s.own, now); err != nil {
				s.config.Logger.Warn("cannot renew the certificate of the rendezvous", "error", err)
			}
		}
	}
}

// Endpoint is where the server serves.
func (s *Server) Endpoint() rendezvous.Endpoint { return s.config.Self }

// Done is closed when the server has failed, or is closed.
func (s *Server) Done() <-chan struct{} { return s.running.Done() }

// Err says why the server does not serve any more, and is nil before Done is closed.
func (s *Server) Err() error {
	if s.running.Err() == nil {
		return nil
	}
	return fmt.Errorf("the rendezvous at %s: %w", s.config.Self, context.Cause(s.running))
}

// Close waits until no client is connected or ctx ends, and stops serving. This process's clients are to be closed before.
// A member that leaves is one of those that may fail: the others go on.
func (s *Server) Close(ctx context.Context) error {
	s.once.Do(func() {
		s.needed = !s.clients.wait(ctx, s.Done())
		s.closed = s.stop()
	})
	return s.closed
}

// stop ends what has been started.
func (s *Server) stop() error {
	s.fail(net.ErrClosed)
	ended := make(chan struct{})
	limit, othersGoOn := stopTimeout, s.needed && s.config.several()
	if othersGoOn {
		limit += leaving
	}
	go func() {
		defer close(ended)
		if othersGoOn {
			s.leave()
		}
		if s.grpc != nil {
			s.clients.closeAll()
			s.grpc.Stop()
		}
		if s.member != nil {
			s.stopMember()
		} else {
			s.stopPeers()
		}
	}()
	var late error
	select {
	case <-ended:
	case <-time.After(limit):
		late = fmt.Errorf("the rendezvous at %s has not ended within %v", s.config.Self, limit)
	}
	if s.dir == nil {
		return late
	}
	return errors.Join(late, s.dir.close())
}

func (s *Server) stopPeers() {
	if s.peers != nil {
		_ = s.peers.Close() // which says how closing listeners went
	}
	s.serving.Wait()
}
