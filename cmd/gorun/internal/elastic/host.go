package elastic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gorun/gorun/cmd/gorun/internal/cli"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
	"github.com/gorun/gorun/rendezvous/reach"
)

// A hosting is an etcd that may be this process's to host.
type hosting struct {
	cli.Access
	in      secrets
	server  embedded.Config // its Job, and where its data goes
	waiting func(reason string)
	logger  hclog.Logger

	findings []string // where the endpoints are, once start has looked
}

// start starts the etcd; nil: another node hosts it.
func (h *hosting) start(ctx context.Context) (*embedded.Server, error) {
	insist := h.Hosts != nil && *h.Hosts
	if !h.Hosted || h.Hosts != nil && !insist {
		return nil, nil
	}
	claim, findings, err := reach.Own(ctx, h.Endpoints, insist)
	for _, f := range findings {
		h.findings = append(h.findings, f.String())
	}
	h.logger.Debug("endpoints", "found", h.findings)
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
	c.Secret, c.Logger = []byte(h.Secret), h.logger.Named("etcd")
	if h.Cert != "" {
		c.Files = &embedded.Files{CA: h.CA, Cert: h.Cert, Key: h.Key}
	}
	server, err := h.serve(ctx, c)
	if err != nil {
		return nil, err
	}
	go func() {
		<-server.Done()
		if err := server.Err(); !errors.Is(err, net.ErrClosed) {
			h.logger.Warn("the rendezvous that this node hosts has ended", "endpoint", claim.Endpoint, "error", err)
		}
	}()
	return server, nil
}

// serve waits for one of the other members, if there are any. One that knows another secret ends the wait: nodes that
// agree on theirs are already there, and this one is not to be.
func (h *hosting) serve(ctx context.Context, c embedded.Config) (*embedded.Server, error) {
	if len(h.Endpoints) > 1 {
		h.waiting(fmt.Sprintf("the rendezvous at %s needs another of its %d endpoints: start gorun on their nodes", c.Self, len(h.Endpoints)))
		var stop func()
		ctx, stop = h.heed(ctx, c.Self)
		defer stop()
	}
	server, err := embedded.Start(ctx, c)
	if wrong, ok := errors.AsType[*rendezvous.MisuseError](context.Cause(ctx)); ok && err != nil {
		return nil, wrong
	}
	return server, err
}

// heed returns a context that ends when a member other than self has been found to know another secret.
func (h *hosting) heed(ctx context.Context, self rendezvous.Endpoint) (heeding context.Context, stop func()) {
	others := slices.DeleteFunc(slices.Clone(h.Endpoints), func(e rendezvous.Endpoint) bool { return e == self })
	heeding, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for heeding.Err() == nil {
			for _, p := range problems(diagnose(heeding, h.Access, h.in, others)) {
				if p.Kind == reach.Credentials {
					cancel(misuse(p))
				}
			}
			select {
			case <-time.After(askPause):
			case <-heeding.Done():
			}
		}
	}()
	return heeding, func() { cancel(nil); <-ended }
}
