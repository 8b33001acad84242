package cli

import (
	"context"
	"io"
	"os"

	"github.com/gorun/gorun/cmd/gorun/internal/health"
	"github.com/gorun/gorun/launcher"
)

// health returns the check of this node; nil: there is none. spec is what its workers have in common.
func (o *options) health(spec launcher.Spec, output io.Writer) func(context.Context) error {
	if o.healthCheck == "" {
		return nil
	}
	own := launcher.Spec{Stdout: output, Stderr: output, Spool: spec.Spool, Console: spec.Console, Raw: spec.Raw, Warn: spec.Warn}
	return func(ctx context.Context) error { return health.Check(ctx, o.healthCheck, own, os.Environ()) }
}
