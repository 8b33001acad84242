package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/hosts"
	"github.com/gorun/gorun/launcher/guard"
)

// Options are the options of a drill.
type Options struct {
	Gorun   string        // path of the program
	Nodes   int           // at least 2; there are more where more must host
	Nproc   int           // workers of each
	Torch   string        // path of the Python in which the built-in workers run, with torch; empty: they are in Go
	Preload bool          // gorun forks them from one that has imported torch
	Program []string      // the user's own, with its arguments; nil: the built-in one
	Dir     string        // where it runs
	After   time.Duration // how long it runs before the fault
	Timeout time.Duration
	Repeat  int       // how often each scenario is run with each policy
	Keep    bool      // keep the logs even if the job did what it should
	Verbose bool      // log every step
	Log     io.Writer // gets a line for each thing that happens
}

func (o *Options) log(format string, args ...any) { _, _ = fmt.Fprintf(o.Log, format+"\n", args...) }

// Run runs scenarios, one after the other, each with all of these policies. It returns an error only for problems outside of the scenarios,
// with the results until then.
func Run(ctx context.Context, o Options, scenarios []*Scenario, policies []Policy) (results []Result, err error) {
	runtime.LockOSThread() // the end of which ends all processes, should this one be killed
	defer runtime.UnlockOSThread()
	dir, err := os.MkdirTemp("", "gorun-drill-")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as the system names working directories
	}
	if err != nil {
		return nil, err
	}
	cleaner, err := guard.Keep(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	defer cleaner.Close()
	defer func() { _ = os.Remove(dir) }() // fails if there are logs in it
	for _, sc := range scenarios {
		for _, policy := range policies {
			r := Result{Scenario: sc.Name, Policy: policy, Runs: []Outcome{}}
			for n := range o.Repeat {
				name := filepath.Join(dir, strings.Join([]string{sc.Name, string(policy), strconv.Itoa(n + 1)}, "-"))
				if err = run(ctx, o, sc, &r, name); err != nil {
					err = errors.Join(err, os.RemoveAll(name))
					break
				}
				if r.Skipped {
					break
				}
			}
			if r.Skipped || len(r.Runs) > 0 {
				results = append(results, r)
			}
			if err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

// run runs a scenario once, in its own directory, and adds what happened to the result.
func run(ctx context.Context, o Options, sc *Scenario, r *Result, dir string) error {
	name := fmt.Sprintf("%s, %s", sc.Name, r.Policy)
	o.log("%s: %s", name, sc.About)
	if why := sc.unsuited(o); why != "" {
		r.Skipped, r.Why = true, why
		o.log("%s: skipped: %s", name, r.Why)
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	o.Nodes = max(o.Nodes, sc.job.hosts)
	d, err := newDrill(o, sc, r.Policy, dir)
	if _, ok := errors.AsType[*hosts.UnavailableError](err); ok { // this machine lacks something for the scenario
		r.Skipped, r.Why = true, err.Error()
		o.log("%s: skipped: %s", name, r.Why)
		return os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout+sc.length, fmt.Errorf("not finished within %v", o.Timeout))
	defer cancel()
	err = d.play(limited, sc)
	if err != nil && o.Program != nil && sc.needs != "" {
		err = fmt.Errorf("%w (%s)", err, sc.needs)
	}
	one := d.outcome()
	one.Leftovers = d.clear(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	one.judge(err)
	if all, on := d.livedOn(); o.Program != nil && d.fault.happened() {
		o.log("%s: of %d workers that the fault did not hit, %d have lived on; the others have started again, or ended", name, all, on)
	}
	if !one.Held || o.Keep {
		one.Logs = dir
	}
	one.report(o, name)
	r.add(one)
	return one.keepLogs(dir)
}

// unsuited says why the workers of a drill cannot play a scenario; empty: they can.
func (sc *Scenario) unsuited(o Options) string {
	switch {
	case sc.builtin && o.Program != nil:
		return "only the built-in program does what this needs"
	case o.Torch != "" && (sc.job.unread || sc.job.disk || sc.Name == "flapping-node"):
		return "only the built-in program in Go does what this needs"
	}
	return ""
}
