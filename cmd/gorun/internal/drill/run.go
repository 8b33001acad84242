package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/hosts"
	"github.com/gorun/gorun/launcher/guard"
)

// Options are the options of a drill.
type Options struct {
	Gorun   string // path of the program
	Nodes   int    // at least 2; there are more where more must host
	Nproc   int    // workers of each
	Timeout time.Duration
	Keep    bool      // logs, also of what holds
	Verbose bool      // log every step
	Log     io.Writer // gets a line for each thing that happens
}

func (o *Options) log(format string, args ...any) { _, _ = fmt.Fprintf(o.Log, format+"\n", args...) }

// Run runs scenarios, one after the other. It returns an error only for problems outside of the scenarios.
func Run(ctx context.Context, o Options, scenarios []*Scenario) (results []Result, err error) {
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
	for _, sc := range scenarios {
		r, err := run(ctx, o, sc, filepath.Join(dir, sc.Name))
		if err != nil {
			return results, errors.Join(err, os.RemoveAll(dir))
		}
		results = append(results, r)
	}
	_ = os.Remove(dir) // fails if there are logs in it
	return results, nil
}

// run runs one scenario, in its own directory.
func run(ctx context.Context, o Options, sc *Scenario, dir string) (Result, error) {
	r := Result{Scenario: sc.Name}
	o.log("%s: %s", sc.Name, sc.About)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return r, err
	}
	o.Nodes = max(o.Nodes, sc.job.hosts)
	s, err := newTestbed(o, sc.job, dir)
	if unavailable, ok := errors.AsType[*hosts.UnavailableError](err); ok {
		r.Skipped, r.Why = true, unavailable.Error()
		o.log("%s: skipped: %s", sc.Name, r.Why)
		return r, os.RemoveAll(dir)
	}
	if err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout+sc.length, fmt.Errorf("not finished within %v", o.Timeout))
	defer cancel()
	err = s.play(limited, sc)
	r.measure(s)
	r.Leftovers = s.clear()
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r.judge(err)
	if !r.Held || o.Keep {
		r.Logs = dir
	}
	r.report(o)
	return r, r.keepLogs(dir)
}

// play performs the steps of a scenario, between a beginning and an end that all scenarios share.
func (s *testbed) play(ctx context.Context, sc *Scenario) error {
	first, begun := sc.job.begin(s.options.Nodes), time.Now()
	steps := []step{start(upTo(0, first)), together(upTo(0, first))}
	if sc.job.etcd > 0 {
		steps = slices.Insert(steps, 0, startEtcds(sc.job.etcd))
	}
	steps = append(steps, sc.steps(s.options.Nodes)...)
	for _, step := range append(steps, restarts(sc.job.restarts), finish()) {
		if s.options.Verbose {
			s.options.log("%s: %5.2f s: %s", sc.Name, time.Since(begun).Seconds(), step.what)
		}
		if err := step.do(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}
