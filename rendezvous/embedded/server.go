package embedded

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/rendezvous"
)

const (
	patience  = 3 * time.Second        // with which etcd is awaited once it has been told to stop
	handover  = 500 * time.Millisecond // for another member to become the leader instead of one that leaves
	handshake = 5 * time.Second        // for who connects to prove itself
	silence   = 6 * time.Second        // after which a client is asked whether it is there: those of agents say so before
	pong      = 3 * time.Second        // for its answer

	withdrawal = time.Second // for the others to let a member go
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
	doors   []*doorway     // by which its clients come
	serving sync.WaitGroup
	clients *connections

	// Of one that has other members:
	clientTLS   *tls.Config // nil: none
	peerClient  *http.Client
	peerHandler atomic.Pointer[http.Handler] // the member's
	founds      atomic.Bool                  // it has no data, and is no member yet
	learner     uint64                       // the member as which it was added to the cluster; 0: none

	needed   bool          // clients were connected when it was closed
	failed   chan error    // the first reason why etcd cannot go on
	closing  chan struct{} // closed by Close
	watching chan struct{} // closed when watch has returned
	done     chan struct{}
	err      error // set before done is closed
	once     sync.Once
	closed   error // what Close returns
}

// Start returns a server that serves: alone after 0.1 s, of three when two have found each other, for which it waits until
// ctx ends. The listeners are the server's, even if Start fails.
func Start(ctx context.Context, config Config) (*Server, error) {
	if config.Logger == nil {
		config.Logger = hclog.NewNullLogger()
	}
	if config.Waiting == nil {
		config.Waiting = func(string) {}
	}
	s := &Server{
		config: config, name: rand.Text(), clients: newConnections(), failed: make(chan error, 1),
		closing: make(chan struct{}), watching: make(chan struct{}), done: make(chan struct{}),
	}
	if err := s.start(ctx); err != nil {
		for _, l := range config.Listeners {
			_ = l.Close() // gRPC may have closed it
		}
		return nil, errors.Join(err, s.stop())
	}
	go s.watch()
	return s, nil
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

// startMember returns when the member is one of a cluster with a leader, and has a vote.
func (s *Server) startMember(ctx context.Context) error {
	if !s.config.several() {
		return s.runMember(ctx, nil)
	}
	if err := s.connectPeers(); err != nil {
		return err
	}
	empty := !s.dir.hasMember()
	s.founds.Store(empty)
	if err := s.servePeers(); err != nil {
		return s.explain(err)
	}
	for {
		var members []rendezvous.Endpoint
		if empty {
			var err error
			if members, err = s.begin(ctx); err != nil {
				return err
			}
			if err := s.dir.clearMember(); err != nil {
				return err
			}
		}
		err := s.runMember(ctx, members)
		if err == nil {
			s.founds.Store(false)
			return s.promote(ctx)
		}
		if s.member != nil && s.isReplaced(ctx) {
			return &rendezvous.MisuseError{Err: fmt.Errorf("the other members have replaced this one while it was away: remove its data, directory %s, and start again", s.dir.path)}
		}
		if s.member != nil || ctx.Err() != nil || !isOutdated(err) {
			return err
		}
	}
}

// isOutdated reports whether a member could not start because the others' cluster is not what it was a moment ago.
func isOutdated(err error) bool {
	return slices.ContainsFunc([]string{"already been bootstrapped", "error validating peerURLs"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// runMember returns when the member is one of a cluster with a leader. members are those of the cluster that it joins, if
// there is one.
func (s *Server) runMember(ctx context.Context, members []rendezvous.Endpoint) error {
	config := s.config.etcd(s.dir.path, members)
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(s.config.Logger, s.fail))
	if err := s.peerTLS(config); err != nil {
		return err
	}
	type result struct {
		member *embed.Etcd
		err    error
	}
	started := make(chan result, 1)
	go func() { // which may be ended for what would have ended the process
		member, err := embed.StartEtcd(config)
		started <- result{member, err}
	}()
	select {
	case r := <-started:
		if r.err != nil {
			return r.err
		}
		s.member = r.member
	case err := <-s.failed:
		return err
	}
	if s.config.several() {
		handler := etcdhttp.NewPeerHandler(s.member.GetLogger(), s.member.Server)
		s.peerHandler.Store(&handler)
	}
	select {
	case <-s.member.Server.ReadyNotify():
		return nil
	case <-ctx.Done():
		if !s.config.several() {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %s", context.Cause(ctx), s.config.nobody())
	case err := <-s.failed:
		return err
	case <-s.member.Server.StopNotify():
		return errStopped
	}
}

var errStopped = errors.New("etcd has stopped by itself")

// explain says what to do about an error of etcd.
func (s *Server) explain(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d, the one above its endpoint's, is in use by another process (members of the cluster use it)", s.config.Self.Port+1)
	}
	return err
}

// serve lets clients in. etcd's own way of doing so has a multiplexer in it that waits for who connects and says nothing.
func (s *Server) serve() error {
	credentials, err := s.config.serverTLS(s.own)
	if err != nil {
		return err
	}
	s.grpc = v3rpc.Server(s.member.Server, nil, nil,
		grpc.Creds(clientCredentials(credentials)),
		grpc.ConnectionTimeout(handshake),
		grpc.StatsHandler(s.clients),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: silence, Timeout: pong}), // who has vanished is not waited for
		grpc.WaitForHandlers(true),
	)
	for _, l := range s.config.Listeners {
		l := newDoorway(s.admissions(l, "clients"))
		s.doors = append(s.doors, l)
		s.serving.Go(func() {
			if err := s.grpc.Serve(l); err != nil {
				s.fail(err)
			}
		})
	}
	return nil
}

// fail is called by whoever finds out that the server cannot go on.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// watch waits for failures, and makes new certificates before the old ones expire.
func (s *Server) watch() {
	defer close(s.watching)
	renew := time.NewTicker(auth.Renewal)
	defer renew.Stop()
	for {
		select {
		case err := <-s.failed:
			s.end(err)
			return
		case <-s.member.Server.StopNotify():
			s.end(errStopped)
			return
		case now := <-renew.C:
			if s.own == nil || !s.config.several() {
				continue
			}
			if _, err := s.dir.writeTLS(s.own, now); err != nil {
				s.config.Logger.Warn("cannot renew the certificate of the rendezvous", "error", err)
			}
		case <-s.closing:
			return
		}
	}
}

func (s *Server) end(err error) {
	s.err = fmt.Errorf("the rendezvous at %s: %w", s.config.Self, err)
	close(s.done)
}

// Endpoint is where the server serves.
func (s *Server) Endpoint() rendezvous.Endpoint { return s.config.Self }

// Done is closed when the server has failed, or has been closed.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says why the server does not serve any more, and is nil before Done is closed.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close waits until no client is connected or ctx ends, and stops serving. This process's clients are to be closed before.
// A member that leaves is one of those that may fail: the others go on.
func (s *Server) Close(ctx context.Context) error {
	s.once.Do(func() {
		s.needed = !s.clients.wait(ctx, s.done)
		close(s.closing)
		<-s.watching
		s.closed = s.stop()
		if s.Err() == nil {
			s.end(net.ErrClosed)
		}
	})
	return s.closed
}

// stop ends what has been started.
func (s *Server) stop() error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if s.grpc != nil {
			for _, d := range s.doors {
				d.shut()
			}
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
	case <-time.After(patience):
		late = fmt.Errorf("the rendezvous at %s has not ended within %v", s.config.Self, patience)
	}
	if s.dir == nil {
		return late
	}
	return errors.Join(late, s.dir.close())
}

// stopMember hands leadership over first, if there is somebody to take it: without a leader nothing can be written until
// the others have held an election.
func (s *Server) stopMember() {
	server := s.member.Server
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		_ = server.TryTransferLeadershipOnShutdown() // there may be nobody
	}()
	select {
	case <-moved:
		s.withdraw()
	case <-time.After(handover):
	}
	server.HardStop() // which ends a handover as well
	<-moved
	s.stopPeers()
	s.member.Close()
}

// withdraw takes a member whose data goes with it out of the cluster, so that those who are left need no majority with it.
// They refuse if they are too few.
func (s *Server) withdraw() {
	if !s.config.several() || !s.dir.temporary || !s.needed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), withdrawal)
	defer cancel()
	if _, err := s.member.Server.RemoveMember(ctx, uint64(s.member.Server.MemberID())); err != nil {
		s.config.Logger.Debug("cannot leave the cluster", "error", err)
	}
}

func (s *Server) stopPeers() {
	if s.peers != nil {
		_ = s.peers.Close() // which says how closing listeners went
	}
	s.serving.Wait()
}
