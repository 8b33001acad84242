package elastic

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/gorun/gorun/cmd/gorun/internal/cli"
	"github.com/gorun/gorun/rendezvous/embedded"
)

// Serve hosts an etcd by hand.
func (Etcd) Serve(ctx context.Context, a cli.Access, dir string, logger hclog.Logger) error {
	in, err := credentials(a)
	if err != nil {
		return err
	}
	h := hosting{
		Access: a, in: in, server: embedded.Config{Job: "gorun etcd", Dir: dir},
		waiting: func(reason string) { logger.Warn("waiting: " + reason) }, logger: logger,
	}
	server, err := h.start(ctx)
	switch {
	case ctx.Err() != nil && server == nil:
		return nil // it was told to stop
	case err != nil:
		return misuse(err)
	case server == nil:
		return misuse(fmt.Errorf("cannot host an etcd: %s", strings.Join(h.findings, "; ")))
	}
	logger.Warn("serving", "endpoint", server.Endpoint().String())
	select {
	case <-ctx.Done():
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // its clients stay where they are
		return server.Close(ctx)
	case <-server.Done():
		return errors.Join(server.Err(), server.Close(ctx))
	}
}
