package cli

import (
	"context"
	"log/slog"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/workergroup"
	"github.com/gorun/gorun/launcher"
)

// What follows the failure of a worker.
const (
	restartAll    = "restart"
	replaceFailed = "replace"
)

var onFailures = []string{restartAll, replaceFailed}

// replace makes config start workers that may outlive their round.
func (o *options) replace(config *agent.Config, dir string, logger *slog.Logger) {
	config.Spec.Console = launcher.NewConsole(&config.Spec)
	group := workergroup.New(workergroup.Config{
		Dir: dir, Host: config.Node.Host, Timeout: o.replaceTimeout, Warn: func(text string) { logger.Warn(text) },
		Start: func(ctx context.Context, spec launcher.Spec) (workergroup.Workers, error) { return start(ctx, spec) },
	})
	config.Start = func(ctx context.Context, spec launcher.Spec) (agent.Gang, error) {
		gang, err := group.Start(ctx, spec)
		if err != nil {
			return nil, err
		}
		return gang, nil
	}
}
