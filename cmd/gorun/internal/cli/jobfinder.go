package cli

import (
	"context"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/jobs"
	"github.com/gorun/gorun/rendezvous"
)

// A jobFinder finds the job that a command is about, and asks its agents.
type jobFinder struct {
	here  host
	etcd  Etcd
	line  commandLine
	name  string // of the job; empty: it has none, or flags say it
	other string // the argument behind the job; empty: the command has none

	nameOptional bool // without a name, the command is about the only job
}

// newJobCommand returns a command about one job. Its first argument is the job's name, which may be left out if use
// has it in brackets.
func newJobCommand(here host, etcd Etcd, use, short, long string, run func(*cobra.Command, *jobFinder) error) *cobra.Command {
	words := slices.DeleteFunc(strings.Fields(use), func(word string) bool { return word == "[flags]" })
	name, arguments := words[0], words[1:]
	about := func(f *flag) string { return f.running }
	find := &jobFinder{here: here, etcd: etcd, nameOptional: strings.Contains(use, "[JOB]"),
		line: newCommandLine(func(f *flag) bool { return about(f) != "" })}
	cmd := &cobra.Command{
		Use: use, DisableFlagsInUseLine: true, Short: short, Long: strings.TrimSpace(long + " " + aboutJob + " " + aboutElsewhere),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if len(args) == 0 {
				agents, _ := jobs.Local(cmd.Context()) // a shell shows no errors
				for _, n := range jobs.Nodes(agents) {
					names = append(names, n.Job)
				}
			}
			slices.Sort(names)
			return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > len(arguments) {
				return usagef("unexpected argument %s (want gorun %s); to run a program with this name, write gorun -- %s",
					quote(args[len(arguments)]), strings.Join(words, " "), name)
			}
			if !find.take(args, len(arguments)) {
				return usagef("want gorun %s; JOB may be left out if --rdzv-id or --rdzv-endpoint says which it is",
					strings.Join(words, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			cmd.SetContext(ctx)
			err := run(cmd, find)
			if is[*jobs.NoJobError](err) || is[*rendezvous.NoJobError](err) {
				return &usageError{err}
			}
			return err
		},
	}
	cmd.Flags().SortFlags = false
	find.line.add(cmd, about)
	return cmd
}

// take takes the arguments of the command, which has so many. It returns false if one is missing.
func (f *jobFinder) take(args []string, count int) bool {
	if count == 2 {
		v := f.line.values(f.here.lookup)
		if len(args) == 0 || len(args) == 1 && !v.has("rdzv-id") && !v.has("rdzv-endpoint") {
			return false
		}
		f.other, args = args[len(args)-1], args[:len(args)-1]
	}
	if len(args) > 0 {
		f.name = args[0]
	}
	return true
}

// job returns the job, and those of its agents that answer. Without an endpoint, it looks for agents and for gorun
// launch on this machine.
func (f *jobFinder) job(ctx context.Context) (*status.Job, []jobs.Agent, error) {
	v, name := f.line.values(f.here.lookup), f.name
	o, err := v.parse(f.here)
	if err != nil {
		return nil, nil, err
	}
	if v["rdzv-id"].from == "--rdzv-id" && name != "" && name != o.runID {
		return nil, nil, usagef("%s and %s name two jobs: leave out one of them", quote(name), o.given["rdzv-id"])
	}
	if name == "" {
		name = o.runID
	}
	if o.endpoint == "" {
		if name == "" && !f.nameOptional {
			return nil, nil, usagef("which job? Name one, as gorun ps lists them")
		}
		agents, err := jobs.Local(ctx)
		if err != nil {
			return nil, nil, err
		}
		job, agents, err := jobs.Choose(agents, name)
		if err != nil {
			return nil, nil, err
		}
		if i := slices.IndexFunc(agents, func(a jobs.Agent) bool { return a.Record != nil }); i >= 0 { // its gorun launch
			return askLaunched(ctx, f.here, f.etcd, agents[i].Record)
		}
		return job, agents, nil
	}
	o.runID = name
	job, agents, err := o.askElsewhere(ctx, f.etcd)
	if isUnreachable(err) {
		err = usagef("%w; on a machine of the job, the command needs no endpoint", err)
	}
	return job, agents, err
}

// askElsewhere asks the agents of a job over its etcd.
func (o *options) askElsewhere(ctx context.Context, etcd Etcd) (*status.Job, []jobs.Agent, error) {
	if err := o.completeElsewhere(); err != nil {
		return nil, nil, err
	}
	if err := o.askByMunge(ctx); err != nil {
		return nil, nil, err
	}
	contacts, err := etcd.Contacts(ctx, rendezvous.Config{Access: o.access(), RunID: o.runID, Prefix: o.conf.prefix()})
	if err != nil {
		return nil, nil, err
	}
	job, agents := jobs.Remote(ctx, contacts, o.runID, o.meetingPoint())
	return job, agents, nil
}

// isUnreachable reports whether an etcd cannot be used from here.
func isUnreachable(err error) bool {
	return is[*rendezvous.MisuseError](err) && !is[*rendezvous.NoJobError](err)
}

// completeElsewhere checks the flags that say where a job is, and sets what follows from them, as for a node of it.
func (o *options) completeElsewhere() error {
	if o.backend == backendStatic {
		if given := o.given["rdzv-backend"]; given != "" {
			return usagef("%s: static nodes do not meet, so nobody knows where they are: run this on each of their machines, without --rdzv-endpoint", given)
		}
		o.backend = "embedded"
	}
	o.nnodes, o.outside = 2, true // or more
	if err := o.loadToken(); err != nil {
		return err
	}
	if err := o.completeElastic(); err != nil {
		return err
	}
	_, err := o.loopbackToken()
	return err
}
