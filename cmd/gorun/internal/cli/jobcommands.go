package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/control"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/jobs"
	"github.com/gorun/gorun/rendezvous"
)

const aboutJob = "JOB is the name of a running job (--rdzv-id), or the pid of its gorun. gorun ps lists your jobs on this machine."

const aboutElsewhere = "For a job whose nodes meet over an etcd, give the same --rdzv-endpoint, --rdzv-id and credentials as its nodes have: then you see and " +
	"steer all of its nodes, from any machine that reaches them."

// jobCommands are the commands for people who look at running jobs and steer them.
func jobCommands(here host, etcd Etcd) []*cobra.Command {
	return []*cobra.Command{
		psCommand(), statusCommand(here, etcd), logsCommand(here, etcd), stacksCommand(here, etcd), restartCommand(here, etcd), scaleCommand(here, etcd), drainCommand(here, etcd),
		stopCommand(here, etcd),
	}
}

// A jobFinder finds the job that a command is about, and asks its agents.
type jobFinder struct {
	here   host
	etcd   Etcd
	values values
	named  bool // the command changes the job, so it must be named
}

// A jobFunc is what a command about one job does.
type jobFunc func(cmd *cobra.Command, find *jobFinder, args []string) error

// newJobCommand returns a command about one job. Its first argument is the job's name, which may be left out if use has it in brackets.
// addOwn, unless it is nil, adds the command's own flags, which come before those that say where the job is.
func newJobCommand(here host, etcd Etcd, use, short, long string, run jobFunc, addOwn func(*cobra.Command)) *cobra.Command {
	words := slices.DeleteFunc(strings.Fields(use), func(word string) bool { return word == "[flags]" })
	name, arguments := words[0], words[1:]
	find := &jobFinder{here: here, etcd: etcd, named: !strings.Contains(use, "[JOB]"), values: newValuesOf("rdzv-endpoint", "rdzv-backend", "rdzv-id", "rdzv-token-file", "rdzv-conf")}
	cmd := &cobra.Command{
		Use: use, DisableFlagsInUseLine: true, Short: short, Long: strings.TrimSpace(long + " " + aboutJob + " " + aboutElsewhere),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if len(args) == 0 {
				for _, n := range jobs.Nodes(jobs.Local(cmd.Context())) {
					names = append(names, n.Job)
				}
			}
			slices.Sort(names)
			return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > len(arguments) {
				return usagef("gorun %s: want no more than %s; to run a program with this name, write gorun -- %s", name, strings.Join(arguments, " "), name)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			cmd.SetContext(ctx)
			err := run(cmd, find, args)
			if is[*jobs.NoJobError](err) || is[*usageError](err) && !strings.HasPrefix(err.Error(), "gorun ") {
				return usagef("gorun %s: %w", name, err)
			}
			return err
		},
	}
	cmd.Flags().SortFlags = false
	if addOwn != nil {
		addOwn(cmd)
	}
	find.values.add(cmd)
	cmd.SetFlagErrorFunc(commandFlagError)
	return cmd
}

// job returns the job with this name, and those of its agents that answer. Without an endpoint, it runs on this machine.
func (f *jobFinder) job(ctx context.Context, name string) (*status.Job, []jobs.Agent, error) {
	o, err := f.values.parse(f.here)
	if err != nil {
		return nil, nil, err
	}
	if name == "" {
		name = o.runID
	}
	if o.endpoint == "" {
		if name == "" && f.named {
			return nil, nil, usagef("which job? Name one, as gorun ps lists them")
		}
		return jobs.Choose(jobs.Local(ctx), name)
	}
	o.runID = name
	if err := o.completeElsewhere(); err != nil {
		return nil, nil, err
	}
	contacts, err := f.etcd.Contacts(ctx, rendezvous.Config{Access: o.access(), RunID: o.runID, Prefix: o.conf.prefix()})
	if err != nil {
		return nil, nil, err
	}
	job, agents := jobs.Remote(ctx, contacts, o.runID, o.meetingPoint())
	return job, agents, nil
}

// completeElsewhere checks the flags that say where a job is, and sets what follows from them, as for a node of it.
func (o *options) completeElsewhere() error {
	if o.backend == backendStatic {
		if given := o.given["rdzv-backend"]; given != "" {
			return usagef("%s: static nodes do not meet, so nobody knows where they are: run this on each of their machines, without --rdzv-endpoint", given)
		}
		o.backend = "embedded"
	}
	o.nnodes = 2 // or more
	if err := o.loadToken(); err != nil {
		return err
	}
	if err := o.completeElastic(); err != nil {
		return err
	}
	_, err := o.loopbackToken()
	return err
}

func psCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "ps [flags]", DisableFlagsInUseLine: true, Short: "List your running jobs on this machine", Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			nodes := jobs.Nodes(jobs.Local(cmd.Context()))
			if asJSON {
				return printJSON(cmd.OutOrStdout(), status.Jobs(nodes))
			}
			_, err := io.WriteString(cmd.OutOrStdout(), jobs.List(nodes, time.Now()))
			return err
		},
	}
	ownFlag(cmd, "json", "", "", "print JSON", setTo(&asJSON, parseSwitch))
	return cmd
}

func printJSON(to io.Writer, document any) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(document)
}

func statusCommand(here host, etcd Etcd) *cobra.Command {
	asJSON, watch := false, false
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		look := func(ctx context.Context) (*status.Job, error) {
			job, _, err := find.job(ctx, argument(args, 0))
			return job, err
		}
		switch {
		case watch && asJSON:
			return usagef("gorun status: --json and --watch: leave out one of them")
		case watch && !isTerminal(os.Stdout):
			return usagef("gorun status: --watch needs a terminal; for a program, use --json")
		case watch:
			return jobs.Watch(cmd.Context(), os.Stdin, os.Stdout, look)
		}
		job, err := look(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(cmd.OutOrStdout(), job)
		}
		_, err = io.WriteString(cmd.OutOrStdout(), jobs.Show(job, time.Now()))
		return err
	}
	return newJobCommand(here, etcd, "status [flags] [JOB]", "Show the nodes, ranks and last events of a running job", "", run, func(cmd *cobra.Command) {
		ownFlag(cmd, "watch", "w", "", "show it in the terminal, and again every second; q or ^C ends this", setTo(&watch, parseSwitch))
		ownFlag(cmd, "json", "", "", "print JSON, as docs/status.md describes it", setTo(&asJSON, parseSwitch))
	})
}

// argument returns an argument; empty: it is not there.
func argument(args []string, i int) string {
	if i >= len(args) {
		return ""
	}
	return args[i]
}

func logsCommand(here host, etcd Etcd) *cobra.Command {
	rank, follow := -1, false
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		_, agents, err := find.job(cmd.Context(), argument(args, 0))
		if err == nil && rank >= 0 {
			agents, err = jobs.WithRank(agents, rank)
		}
		if err != nil {
			return err
		}
		return logs(cmd.Context(), agents, rank, follow, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	long := "gorun keeps the last 128 KiB of each worker."
	return newJobCommand(here, etcd, "logs [flags] [JOB]", "Print the last lines that the workers of a job have written", long, run, func(cmd *cobra.Command) {
		ownFlag(cmd, "follow", "f", "", "go on with the lines that come, until the job ends", setTo(&follow, parseSwitch))
		ownFlag(cmd, "rank", "", "R", "only the worker with this rank", setTo(&rank, between(0, rendezvous.WorldLimit-1)))
	})
}

// logs prints the lines of workers: those of stdout on stdout, and those of stderr on stderr.
func logs(ctx context.Context, agents []jobs.Agent, rank int, follow bool, stdout, stderr io.Writer) error {
	var mu sync.Mutex
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	show := func(l control.Line) {
		mu.Lock()
		defer mu.Unlock()
		if l.Missed {
			_, _ = fmt.Fprintf(stderr, "gorun: rank %d: earlier lines are not kept\n", l.Rank) // there is nowhere to report that stderr is gone
		}
		to := stdout
		if l.Stream == "stderr" {
			to = stderr
		}
		if _, err := fmt.Fprintf(to, "[%d] %s\n", l.Rank, l.Text); err != nil && failed == nil {
			failed = err
			cancel() // nobody reads it any more
		}
	}
	errs := make([]error, len(agents))
	var reading sync.WaitGroup
	for i, a := range agents {
		reading.Go(func() {
			if err := a.Client.Logs(ctx, rank, follow, show); err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("%s: %w", a.Node.Host, err)
			}
		})
	}
	reading.Wait()
	return errors.Join(append(errs, failed)...)
}

func stopCommand(here host, etcd Etcd) *cobra.Command {
	kill := false
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		job, agents, err := find.job(cmd.Context(), argument(args, 0))
		if err != nil {
			return err
		}
		kind := agent.CommandStop
		if kill {
			kind = agent.CommandKill
		}
		return command(cmd, job, agents, agent.Command{Kind: kind}, "is stopping on")
	}
	long := "It ends as after SIGTERM to each gorun of the job: the workers have --shutdown-timeout to end. Its exit code is 143, unless all workers exit 0."
	return newJobCommand(here, etcd, "stop [flags] JOB", "End a running job", long, run, func(cmd *cobra.Command) {
		ownFlag(cmd, "kill", "", "", "kill the workers at once", setTo(&kill, parseSwitch))
	})
}

func restartCommand(here host, etcd Etcd) *cobra.Command {
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		job, agents, err := find.job(cmd.Context(), argument(args, 0))
		if err != nil {
			return err
		}
		return command(cmd, job, agents, agent.Command{Kind: agent.CommandRestart}, "is starting another round on")
	}
	long := "This is no failure: it does not count for --max-restarts. With --on-failure=replace, workers that take part live on, and enter the new round."
	return newJobCommand(here, etcd, "restart [flags] JOB", "Start all workers of a running job again, in a new round", long, run, nil)
}

func drainCommand(here host, etcd Etcd) *cobra.Command {
	force := false
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		if len(args) < 2 {
			return usagef("gorun drain: want a job and a node of it, as gorun status shows them")
		}
		job, agents, err := find.job(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		node, err := jobs.WithNode(agents, args[1])
		if err != nil {
			return err
		}
		return command(cmd, job, []jobs.Agent{node}, agent.Command{Kind: agent.CommandDrain, Force: force}, "goes on without the node on")
	}
	long := "The node leaves as after SIGTERM to its gorun, and the others go on in a new round. This is refused if they were fewer than --nnodes allows. " +
		"NODE is its host, its name or its node rank."
	return newJobCommand(here, etcd, "drain [flags] JOB NODE", "Take a node out of a running job", long, run, func(cmd *cobra.Command) {
		ownFlag(cmd, "force", "", "", "take it out even if the job then ends", setTo(&force, parseSwitch))
	})
}

func scaleCommand(here host, etcd Etcd) *cobra.Command {
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		if len(args) < 2 {
			return usagef("gorun scale: want a job, and its number of nodes: N or MIN:MAX")
		}
		var o options
		if err := setNnodes(&o, args[1]); err != nil {
			return usagef("gorun scale %s: %w", quote(args[1]), err)
		}
		job, agents, err := find.job(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		c := agent.Command{Kind: agent.CommandScale, Nodes: [2]int{o.minNodes, o.nnodes}}
		return command(cmd, job, agents, c, fmt.Sprintf("may have %d to %d nodes from now on: recorded by", o.minNodes, o.nnodes))
	}
	long := "If the present round has more nodes than MAX, another one begins at once: the nodes with the lowest ranks stay, and the others wait as spares, " +
		"without workers. If it has fewer than MIN, it goes on, but no other one begins before there are enough."
	return newJobCommand(here, etcd, "scale [flags] JOB MIN:MAX", "Change how many nodes a running job may have", long, run, nil)
}

// command asks agents of a job for something, and says in a line for each that it is done.
func command(cmd *cobra.Command, job *status.Job, agents []jobs.Agent, c agent.Command, done string) error {
	var failed []error
	for _, n := range job.Nodes {
		if n.Problem != "" && c.Kind != agent.CommandDrain {
			failed = append(failed, fmt.Errorf("job %s on %s: %s", job.ID, n.Host, n.Problem))
		}
	}
	for _, r := range jobs.Command(cmd.Context(), agents, c) {
		if r.Err != nil {
			failed = append(failed, fmt.Errorf("job %s on %s: %w", job.ID, r.Node.Host, r.Err))
			continue
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "job %s %s %s (pid %d)\n", job.ID, done, r.Node.Host, r.Node.Pid); err != nil {
			return err
		}
		if jobs.IsForOne(c.Kind) {
			return nil
		}
	}
	if len(failed) > 0 {
		return &usageError{errors.Join(failed...)}
	}
	return nil
}

func stacksCommand(here host, etcd Etcd) *cobra.Command {
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		job, agents, err := find.job(cmd.Context(), argument(args, 0))
		if err != nil {
			return err
		}
		var failed []error
		for _, r := range jobs.Command(cmd.Context(), agents, agent.Command{Kind: agent.CommandStacks}) {
			if r.Err != nil {
				failed = append(failed, fmt.Errorf("job %s on %s: %w", job.ID, r.Node.Host, r.Err))
				continue
			}
			if _, err := io.WriteString(cmd.OutOrStdout(), jobs.ShowStacks(r.Node.Host, r.Reply)); err != nil {
				return err
			}
		}
		if len(failed) > 0 {
			return &usageError{errors.Join(failed...)}
		}
		return nil
	}
	long := "The workers go on undisturbed. docs/hang.md says for which programs gorun finds stacks."
	return newJobCommand(here, etcd, "stacks [flags] [JOB]", "Write what the workers of a job are doing to files, and say it in a line for each", long, run, nil)
}
