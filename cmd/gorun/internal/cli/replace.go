package cli

import (
	"context"
	"log/slog"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/workergroup"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// What follows the failure of a worker.
const (
	restartAll    = "restart"
	replaceFailed = "replace"
)

var onFailures = []string{restartAll, replaceFailed}

// checkReplace checks what goes with --on-failure.
func (o *options) checkReplace() error {
	timeout, given := o.given["replace-timeout"]
	replaces := o.onFailure == replaceFailed
	switch {
	case given && !replaces:
		return usagef("%s: has no effect without --on-failure=%s", timeout, replaceFailed)
	case o.replaceTimeout <= 0:
		return usagef("%s: want more than 0 seconds", timeout)
	case replaces && o.nnodes > 1 && !o.elastic():
		return usagef("%s: static nodes do not learn that a worker of another node has failed: have the nodes meet over an etcd, "+
			"as with --rdzv-backend=embedded --rdzv-endpoint=node0:%d", o.given["on-failure"], rendezvous.EmbeddedPort)
	}
	return nil
}

// replace makes config start workers that may outlive their round. Call end when the job is over.
func (o *options) replace(config *agent.Config, dir string, logger *slog.Logger) (end func()) {
	var spare spareGuard
	config.Spec.Console = launcher.NewConsole(&config.Spec)
	group := workergroup.New(workergroup.Config{
		Dir: dir, Timeout: o.replaceTimeout, Warn: func(text string) { logger.Warn(text) },
		Start: func(ctx context.Context, spec launcher.Spec) (workergroup.WorkerGang, error) {
			if g := spare.take(); g != nil {
				ahead := spec
				ahead.Guard = g
				if gang, err := launcher.Start(ctx, ahead); err == nil {
					return gang, nil
				} // or the guard has died meanwhile
			}
			gang, err := launcher.Start(ctx, spec)
			if err != nil {
				return nil, err
			}
			return gang, nil
		},
	})
	config.Start = func(ctx context.Context, spec launcher.Spec) (agent.Gang, error) {
		gang, err := group.Start(ctx, spec)
		if err != nil {
			return nil, err
		}
		spare.refill()
		return gang, nil
	}
	return spare.close
}
