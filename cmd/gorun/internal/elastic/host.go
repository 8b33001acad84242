package elastic

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/go-hclog"

	"github.com/gorun/gorun/cmd/gorun/internal/cli"
	"github.com/gorun/gorun/rendezvous/embedded"
	"github.com/gorun/gorun/rendezvous/reach"
)

// host starts the etcd if it is this node's to host; nil: it is not.
func host(ctx context.Context, a cli.Access, job, dir string, tell func(string), logger hclog.Logger) (*embedded.Server, error) {
	insist := a.Hosts != nil && *a.Hosts
	if !a.Hosted || a.Hosts != nil && !insist {
		return nil, nil
	}
	claim, findings, err := reach.Own(ctx, a.Endpoints, insist)
	for _, f := range findings {
		logger.Debug("endpoint", "finding", f.String())
	}
	if err != nil || claim == nil {
		return nil, err
	}
	if len(a.Endpoints) > 1 {
		tell(fmt.Sprintf("the rendezvous at %s needs another of its %d endpoints: start gorun on their nodes", claim.Endpoint, len(a.Endpoints)))
	}
	config := embedded.Config{
		Listeners: claim.Listeners, Self: claim.Endpoint, Members: a.Endpoints, Job: job, Dir: dir,
		Secret: []byte(a.Secret), Logger: logger.Named("etcd"),
	}
	if a.Cert != "" {
		config.Files = &embedded.Files{CA: a.CA, Cert: a.Cert, Key: a.Key}
	}
	server, err := embedded.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	go func() {
		<-server.Done()
		if err := server.Err(); !errors.Is(err, net.ErrClosed) {
			logger.Warn("the rendezvous that this node hosts has ended", "endpoint", claim.Endpoint, "error", err)
		}
	}()
	return server, nil
}

// Serve hosts an etcd by hand.
func (Etcd) Serve(ctx context.Context, a cli.Access, dir string, logger hclog.Logger) error {
	if a.Hosts == nil {
		a.Hosts = new(true)
	}
	tell := func(reason string) { logger.Warn("waiting: " + reason) }
	server, err := host(ctx, a, "gorun etcd", dir, tell, logger)
	if err != nil {
		return misuse(err)
	}
	logger.Warn("serving", "endpoint", server.Endpoint().String())
	select {
	case <-ctx.Done():
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // its clients stay where they are
		return server.Close(ctx)
	case <-server.Done():
		return server.Err()
	}
}
