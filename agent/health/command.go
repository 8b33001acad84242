package health

import (
	"context"
	"fmt"
	"strings"

	"github.com/gorun/gorun/launcher"
)

// maxOutput is how many bytes of each of its two streams a command may show. It is no program whose output the user wants.
const maxOutput = 16 << 10

// Command is the check that a command of the shell exits with 0. spec says where its output goes, which temporary directory its guard
// keeps, and what it inherits; the command runs as the only worker of a gang, so that nothing of it is left behind.
func Command(command string, spec launcher.Spec, environ []string) Check {
	return Check{fmt.Sprintf("%.60q", command), func(ctx context.Context) error {
		spec.Argv = []string{"/bin/sh", "-c", command}
		spec.Workers = []launcher.WorkerSpec{{Env: environ, Prefix: "[health check] ", Show: maxOutput}}
		gang, err := launcher.Start(ctx, spec)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, gang.Kill)
		defer stop()
		var ended launcher.Exit
		for x := range gang.Exits() {
			ended = x
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !ended.Failed():
			return nil
		case len(ended.Tail) > 0:
			return fmt.Errorf("%s: %s", ended, strings.TrimSpace(ended.Tail[len(ended.Tail)-1]))
		default:
			return fmt.Errorf("%s", ended)
		}
	}}
}
