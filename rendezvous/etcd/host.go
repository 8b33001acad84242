package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
	"github.com/gorun/gorun/rendezvous/internal/reach"
)

// A hosting is an etcd that this process may have to host.
type hosting struct {
	rendezvous.Access
	target   reach.Target
	server   embedded.Config // its Job, where its data goes, and what it tells
	findings []string        // where the endpoints are, once claim has looked
	taken    bool            // one of them is on this machine, where another process had it when claim looked
}

// claim returns what to serve; nil: another node hosts the etcd.
func (h *hosting) claim(ctx context.Context) (*embedded.Config, error) {
	insist := h.Hosts != nil && *h.Hosts
	if !h.Hosted || h.Hosts != nil && !insist {
		return nil, nil
	}
	claim, findings, err := reach.Own(ctx, h.Endpoints, insist)
	h.findings, h.taken = nil, false
	for _, f := range findings {
		h.findings = append(h.findings, f.String())
		h.taken = h.taken || errors.Is(f.Err, reach.ErrTaken)
	}
	h.server.Logger.Debug("endpoints", "found", h.findings)
	switch {
	case ctx.Err() != nil && claim == nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, misuse(err)
	case claim == nil:
		return nil, nil
	}
	c := h.server
	c.Listeners, c.Self, c.Members = claim.Listeners, claim.Endpoint, h.Endpoints
	c.Secret, c.Logger = []byte(h.Secret), c.Logger.WithGroup("etcd")
	if h.Cert != "" {
		c.Files = &embedded.Files{CA: h.CA, Cert: h.Cert, Key: h.Key}
	}
	return &c, nil
}

// A host is a server that starts, which takes until most of the members are there. A member that has lost its data takes
// longer: its node does not wait for that.
type host struct {
	endpoint rendezvous.Endpoint
	cancel   context.CancelCauseFunc // makes the start fail
	started  chan struct{}           // closed when server and err are set
	server   *embedded.Server        // nil: err says why
	err      error

	aside  atomic.Bool            // the node does not wait for it
	reason atomic.Pointer[string] // what it waits for; nil: nothing
}

// start begins to host the etcd; nil: another node hosts it.
func (h *hosting) start(ctx context.Context) (*host, error) {
	c, err := h.claim(ctx)
	if c == nil || err != nil {
		return nil, err
	}
	s := &host{endpoint: c.Self, started: make(chan struct{})}
	startCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.cancel = cancel
	c.Waiting = func(reason string) {
		s.reason.Store(&reason)
		if !s.aside.Load() {
			h.server.Waiting(reason)
		}
	}
	go func() {
		s.server, s.err = embedded.Start(startCtx, *c)
		close(s.started)
		if s.err != nil {
			return
		}
		h.server.Logger.Debug("hosting the rendezvous", "endpoint", s.endpoint)
		<-s.server.Done()
		if err := s.server.Err(); !errors.Is(err, net.ErrClosed) {
			h.server.Logger.Warn("the rendezvous that this node hosts has ended", "endpoint", s.endpoint, "error", err)
		}
	}()
	return s, nil
}

// await returns when the server serves, or, if others will do, when they do. A member that knows another secret ends it:
// nodes that agree on theirs are already there, and this one is not to be.
func (h *hosting) await(ctx context.Context, s *host, othersDo bool) error {
	lookCtx, stop := context.WithCancel(ctx)
	looked := make(chan error, 1)
	var looking sync.WaitGroup
	looking.Go(func() { looked <- h.look(lookCtx, s.endpoint, othersDo) })
	defer looking.Wait()
	defer stop()
	select {
	case <-s.started:
		return s.err
	case err := <-looked:
		if err != nil {
			return s.fail(err)
		}
		s.aside.Store(true)
		go h.follow(s)
		return nil
	}
}

// look looks at the other members until one of them knows another secret, one serves if that will do, or ctx ends.
func (h *hosting) look(ctx context.Context, self rendezvous.Endpoint, oneWillDo bool) error {
	others := h.target
	others.Endpoints = slices.DeleteFunc(slices.Clone(h.Endpoints), func(e rendezvous.Endpoint) bool { return e == self })
	for len(others.Endpoints) > 0 && ctx.Err() == nil {
		err := reach.Diagnose(ctx, others)
		if err == nil && oneWillDo {
			return nil
		}
		for _, p := range problems(err) {
			if p.Kind == reach.Credentials {
				return misuse(p)
			}
		}
		network.Pause(ctx, askPause)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// follow says that a node is in its job without hosting, and why.
func (h *hosting) follow(s *host) {
	select {
	case <-s.started:
	case <-time.After(hostWarnDelay):
		if reason := s.reason.Load(); reason != nil {
			h.server.Logger.Warn("this node does not host the rendezvous yet, and keeps trying", "because", *reason)
		}
		<-s.started
	}
	if s.err != nil && !errors.Is(s.err, net.ErrClosed) {
		h.server.Logger.Warn("this node does not host the rendezvous", "error", s.err)
	}
}

// hostWarnDelay is how long a host may take to become a member again before it logs that.
const hostWarnDelay = 10 * time.Second

// fail ends the start, and says why.
func (s *host) fail(err error) error {
	s.cancel(err)
	<-s.started
	if s.server != nil { // it was faster
		return errors.Join(err, s.close(context.Background()))
	}
	if wrong, ok := errors.AsType[*rendezvous.MisuseError](err); ok {
		return wrong
	}
	return s.err
}

// close ends the server, or its start.
func (s *host) close(ctx context.Context) error {
	s.cancel(net.ErrClosed)
	<-s.started
	if s.server == nil {
		return nil
	}
	return s.server.Close(ctx)
}

// Serve hosts an etcd until ctx ends: gorun etcd.
func (Backend) Serve(ctx context.Context, a rendezvous.Access, dir string, logger *slog.Logger) error {
	target, err := targetOf(a)
	if err != nil {
		return err
	}
	server := embedded.Config{Job: "gorun etcd", Dir: dir, Waiting: func(reason string) { logger.Info("waiting: " + reason) }, Logger: logger}
	h := hosting{Access: a, target: target, server: server}
	host, err := h.start(ctx)
	if host != nil {
		err = h.await(ctx, host, false)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return nil // the user has stopped it
	case err != nil:
		return misuse(err)
	case host == nil:
		return misuse(fmt.Errorf("cannot host an etcd: %s", strings.Join(h.findings, "; ")))
	}
	logger.Info("serving", "endpoint", host.endpoint.String())
	select {
	case <-ctx.Done():
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // its clients stay where they are
		return host.close(ctx)
	case <-host.server.Done():
		return errors.Join(host.server.Err(), host.close(ctx))
	}
}
