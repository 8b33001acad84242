package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gorun/gorun/agent/health"
	"github.com/gorun/gorun/cmd/gorun/internal/jobs"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// preflights are the checks that gorun has itself, by their names. all stands for every one of them.
var preflights = []string{"disk", "files", "port", "network", "clock", "all"}

func setPreflight(o *options, s string) error {
	o.preflight = map[string]bool{}
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(preflights, name) {
			return fmt.Errorf("want %s, or several separated by commas%s", anyOf(preflights), didYouMean(name, preflights))
		}
		o.preflight[name] = true
	}
	return nil
}

// checks returns the checks of this node. spec is what its workers have in common. Files of the job are in temp. contacts returns the
// agents that the job has, if it runs already.
func (o *options) checks(spec launcher.Spec, temp string, output io.Writer, contacts func(context.Context) (rendezvous.Contacts, error)) (list []health.Check) {
	add := func(name string, c health.Check) {
		if o.preflight[name] || o.preflight["all"] {
			list = append(list, c)
		}
	}
	dirs := []string{temp}
	if o.logDir != "" && o.logDir != os.DevNull {
		dirs = append(dirs, o.logDir)
	}
	add("disk", health.Disk(dirs...))
	add("files", health.Files(o.nproc))
	add("port", health.Port(o.localAddr))
	if o.elastic() {
		probe := func(check func([]jobs.Probed) error) func(context.Context) error {
			return func(ctx context.Context) error {
				found, err := contacts(ctx)
				if err != nil {
					return nil // there is no job yet, or the node finds out when it joins
				}
				return check(jobs.ProbeAll(ctx, found))
			}
		}
		add("network", health.Check{Name: "network", Run: probe(jobs.CheckNetwork)})
		add("clock", health.Check{Name: "clock", Run: probe(jobs.CheckClock)})
	}
	if o.healthCheck != "" {
		own := launcher.Spec{Stdout: output, Stderr: output, Spool: spec.Spool, Console: spec.Console, Raw: spec.Raw, Warn: spec.Warn}
		list = append(list, health.Command(o.healthCheck, own, os.Environ()))
	}
	return list
}
