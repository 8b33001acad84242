package elastic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
)

// Serve hosts an etcd by hand.
func (Etcd) Serve(ctx context.Context, a rendezvous.Access, dir string, logger *slog.Logger) error {
	in, err := credentials(a)
	if err != nil {
		return err
	}
	h := hosting{
		Access: a, in: in, server: embedded.Config{Job: "gorun etcd", Dir: dir},
		waiting: func(reason string) { logger.Info("waiting: " + reason) }, logger: logger,
	}
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
