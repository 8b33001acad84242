package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gorun/gorun/agent/health"
	"github.com/gorun/gorun/launcher"
)

// preflights are the checks that gorun has itself, by their names. all stands for every one of them.
var preflights = []string{"disk", "files", "port", "all"}

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

// checks returns the checks of this node. spec is what its workers have in common. Files of the job are in temp.
func (o *options) checks(spec launcher.Spec, temp string, output io.Writer) (list []health.Check) {
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
	if o.healthCheck != "" {
		own := launcher.Spec{Stdout: output, Stderr: output, Spool: spec.Spool, Console: spec.Console, Raw: spec.Raw, Warn: spec.Warn}
		list = append(list, health.Command(o.healthCheck, own, os.Environ()))
	}
	return list
}
