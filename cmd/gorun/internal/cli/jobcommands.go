package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/cmd/gorun/internal/jobs"
	"github.com/gorun/gorun/rendezvous"
)

const aboutJob = "JOB is the name of a running job (--rdzv-id), or the pid of its gorun. gorun ps lists your jobs on this machine, and those that gorun launch has started from it."

const aboutElsewhere = "For a job whose nodes meet over an etcd, give the same --rdzv-endpoint, --rdzv-id and credentials as its nodes have: then you see and " +
	"steer all of its nodes, from any machine that reaches them."

// jobCommands are the commands for people who look at running jobs and steer them.
func jobCommands(here host, etcd Etcd) []*cobra.Command {
	return []*cobra.Command{
		psCommand(here, etcd), statusCommand(here, etcd), logsCommand(here, etcd), stacksCommand(here, etcd), restartCommand(here, etcd), scaleCommand(here, etcd), drainCommand(here, etcd),
		stopCommand(here, etcd),
	}
}

func psCommand(here host, etcd Etcd) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "ps [flags]", DisableFlagsInUseLine: true, Short: "List your running jobs on this machine", Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			agents, err := jobs.Local(cmd.Context())
			if err != nil {
				return &usageError{err}
			}
			nodes := jobs.Expand(agents, func(r *control.Record) (*status.Job, error) {
				job, _, err := askLaunched(cmd.Context(), here, etcd, r)
				return job, err
			})
			return show(cmd.OutOrStdout(), asJSON, status.Jobs(nodes), func() string { return jobs.List(nodes, time.Now()) })
		},
	}
	ownFlag(cmd, "json", "", "", "print JSON", setTo(&asJSON, parseSwitch))
	return cmd
}

func statusCommand(here host, etcd Etcd) *cobra.Command {
	asJSON, watch := false, false
	run := func(cmd *cobra.Command, find *jobFinder) error {
		look := func(ctx context.Context) (*status.Job, error) {
			job, _, err := find.job(ctx)
			return job, err
		}
		switch {
		case watch && asJSON:
			return usagef("--json and --watch: leave out one of them")
		case watch && !isTerminal(os.Stdout):
			return usagef("--watch needs a terminal; for a program, use --json")
		case watch:
			return jobs.Watch(cmd.Context(), os.Stdin, os.Stdout, look)
		}
		job, err := look(cmd.Context())
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), asJSON, job, func() string { return jobs.Show(job, time.Now()) })
	}
	cmd := newJobCommand(here, etcd, "status [flags] [JOB]", "Show the nodes, ranks and last events of a running job", "", run)
	ownFlag(cmd, "watch", "w", "", "show it in the terminal, and again every second; q or ^C ends this", setTo(&watch, parseSwitch))
	ownFlag(cmd, "json", "", "", "print JSON, as docs/status.md describes it", setTo(&asJSON, parseSwitch))
	return cmd
}

func logsCommand(here host, etcd Etcd) *cobra.Command {
	rank, follow := -1, false
	run := func(cmd *cobra.Command, find *jobFinder) error {
		job, agents, err := find.job(cmd.Context())
		if err != nil {
			return err
		}
		missing := unanswered(job)
		if rank >= 0 {
			missing = nil
			if agents, err = jobs.WithRank(agents, rank); err != nil {
				return err
			}
		}
		if follow {
			for _, m := range missing { // nobody should wait for their lines
				_ = say(cmd.ErrOrStderr(), "gorun: %v", m) // there is nowhere to report that stderr is gone
			}
		}
		return errors.Join(append(missing, logs(cmd.Context(), agents, rank, follow, cmd.OutOrStdout(), cmd.ErrOrStderr()))...)
	}
	cmd := newJobCommand(here, etcd, "logs [flags] [JOB]", "Print the last lines that the workers of a job have written",
		"gorun keeps the last 128 KiB of each worker.", run)
	ownFlag(cmd, "follow", "f", "", "go on with the lines that come, until the job ends", setTo(&follow, parseSwitch))
	ownFlag(cmd, "rank", "", "R", "only the worker with this rank", setTo(&rank, between(0, rendezvous.WorldLimit-1)))
	return cmd
}

// logs prints the lines of workers: those of stdout on stdout, and those of stderr on stderr.
func logs(ctx context.Context, agents []jobs.Agent, rank int, follow bool, stdout, stderr io.Writer) error {
	var mu sync.Mutex
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	show := func(l control.Line, elsewhere string) {
		mu.Lock()
		defer mu.Unlock()
		if l.Missed {
			_ = say(stderr, "gorun: rank %d: earlier lines are not kept%s", l.Rank, elsewhere) // there is nowhere to report that stderr is gone
		}
		to, file := stdout, os.Stdout
		if l.Stream == "stderr" {
			to, file = stderr, os.Stderr
		}
		if _, err := io.WriteString(to, logLine(l, isTerminal(file))); err != nil && failed == nil {
			failed = err
			cancel() // nobody reads it any more
		}
	}
	errs := make([]error, len(agents))
	var reading sync.WaitGroup
	for i, a := range agents {
		reading.Go(func() {
			elsewhere := ""
			if a.Node.Logs != "" {
				elsewhere = fmt.Sprintf("; log files of %s: %s", a.Node.Host, a.Node.Logs)
			}
			if err := a.Client.Logs(ctx, rank, follow, func(l control.Line) { show(l, elsewhere) }); err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("%s: %w", a.Node.Host, err)
			}
		})
	}
	reading.Wait()
	return errors.Join(append(errs, failed)...)
}

// logLine returns a line as it is shown; empty: it is not. On a terminal, the next one takes the place of one that is unfinished.
func logLine(l control.Line, onTerminal bool) string {
	text := fmt.Sprintf("[%d] %s", l.Rank, l.Text)
	switch {
	case l.Unfinished && onTerminal:
		return "\x1b[K\x1b[?7l" + text + "\x1b[?7h\r" // in one row
	case l.Unfinished:
		return ""
	case onTerminal:
		return "\x1b[K" + text + "\n"
	}
	return text + "\n"
}
