package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	etcdserrors "go.etcd.io/etcd/server/v3/etcdserver/errors"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

const (
	leaving       = etcdserver.HealthInterval + time.Second // for a member to leave others that are needed; they let none go before they have been connected for that interval
	handover      = 500 * time.Millisecond                  // for another member to become the leader, before this one asks to be let go
	withdrawal    = time.Second                             // for the others to let a member go, before it asks again: a request may be lost with a leader
	withdrawPause = 50 * time.Millisecond
)

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
	if err := s.servePeers(); errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d, the next one after its endpoint's, is in use by another process (members of the cluster use it)", s.config.Self.Port+1)
	} else if err != nil {
		return err
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
	text := err.Error()
	return strings.Contains(text, "already been bootstrapped") || strings.Contains(text, "error validating peerURLs")
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
	case <-s.running.Done():
		return explainMemory(context.Cause(s.running))
	}
	if s.config.several() {
		handler := etcdhttp.NewPeerHandler(s.member.GetLogger(), s.member.Server)
		s.peer.Store(&handler)
	}
	select {
	case <-s.member.Server.ReadyNotify():
		return nil
	case <-ctx.Done():
		if !s.config.several() {
			return ctx.Err()
		}
		why := s.config.nobody()
		if members != nil {
			why = "it has lost its data and is a member again, but has not got the data of the others: let all of them reach each other's ports and the next ones"
		}
		return fmt.Errorf("%w: %s", context.Cause(ctx), why)
	case <-s.running.Done():
		return context.Cause(s.running)
	case <-s.member.Server.StopNotify():
		return errStopped
	}
}

// explainMemory adds a limit to the error of an etcd that cannot map its database: there may be enough memory.
func explainMemory(err error) error {
	var limit syscall.Rlimit
	if !errors.Is(err, syscall.ENOMEM) || syscall.Getrlimit(syscall.RLIMIT_AS, &limit) != nil || limit.Cur > 1<<50 {
		return err
	}
	return fmt.Errorf("%w: an etcd needs 1 GiB of address space for its database, although it uses little of that, and ulimit -v lets this process have %d MiB: "+
		"raise the limit, or let another machine host the etcd", err, limit.Cur>>20)
}

var errStopped = errors.New("etcd has stopped by itself")

// leave lets the others go on without this member, as long as clients are connected, which need them. It hands leadership over
// first, if there is somebody to take it: without a leader nothing can be written until the others have held an election. Then it
// takes a member whose data goes with it out of the cluster, so that those who are left need no majority with it.
func (s *Server) leave() {
	server := s.member.Server
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	s.serving.Go(func() {
		s.clients.wait(ctx, server.StopNotify())
		cancel()
	})
	moved := make(chan struct{})
	s.serving.Go(func() { // until the member stops, if nobody takes it
		defer close(moved)
		_ = server.TryTransferLeadershipOnShutdown() // there may be nobody
	})
	select {
	case <-moved:
	case <-time.After(handover):
	case <-ctx.Done():
	}
	if !s.dir.temporary {
		return
	}
	for ctx.Err() == nil {
		err := s.withdraw(ctx)
		if err == nil || !isPassing(err) {
			return
		}
		s.config.Logger.Debug("cannot leave the cluster", "error", err)
		network.Pause(ctx, withdrawPause)
	}
}

// withdraw asks the others once to let this member go.
func (s *Server) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, withdrawal)
	defer cancel()
	_, err := s.member.Server.RemoveMember(ctx, uint64(s.member.Server.MemberID()))
	return err
}

// isPassing reports whether a later try to leave the cluster may succeed. Otherwise this member has left, has stopped, or is
// one without which the others are too few.
func isPassing(err error) bool {
	return !errors.Is(err, membership.ErrIDRemoved) && !errors.Is(err, membership.ErrIDNotFound) &&
		!errors.Is(err, etcdserrors.ErrStopped) && !errors.Is(err, etcdserrors.ErrNotEnoughStartedMembers)
}

// stopMember does not tell the others.
func (s *Server) stopMember() {
	s.member.Server.HardStop() // which ends a handover as well
	s.stopPeers()
	s.member.Close()
}
