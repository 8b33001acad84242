package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/jobs"
)

func stopCommand(here host, etcd Etcd) *cobra.Command {
	kill := false
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		job, agents, err := find.job(cmd.Context(), jobOf(args))
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
		job, agents, err := find.job(cmd.Context(), jobOf(args))
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
		name, which, ok := find.jobAnd(args)
		if !ok {
			return usagef("gorun drain: want a job and a node of it, as gorun status shows them")
		}
		job, agents, err := find.job(cmd.Context(), name)
		if err != nil {
			return err
		}
		node, err := jobs.WithNode(agents, which)
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
		name, nodes, ok := find.jobAnd(args)
		if !ok {
			return usagef("gorun scale: want a job, and its number of nodes: N or MIN:MAX")
		}
		var o options
		if err := setNnodes(&o, nodes); err != nil {
			return usagef("gorun scale %s: %w", quote(nodes), err)
		}
		job, agents, err := find.job(cmd.Context(), name)
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
	if c.Kind != agent.CommandDrain {
		failed = unanswered(job)
	}
	for _, r := range jobs.Command(cmd.Context(), agents, c) {
		if r.Err != nil {
			failed = append(failed, fmt.Errorf("job %s on %s: %w", job.ID, r.Node.Host, r.Err))
			continue
		}
		if err := say(cmd.OutOrStdout(), "job %s %s %s (pid %d)", job.ID, done, r.Node.Host, r.Node.Pid); err != nil {
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

// unanswered returns an error for each node of a job that does not answer.
func unanswered(job *status.Job) (errs []error) {
	for _, n := range job.Nodes {
		if n.Problem != "" {
			errs = append(errs, fmt.Errorf("job %s on %s: %s", job.ID, n.Host, n.Problem))
		}
	}
	return errs
}

func stacksCommand(here host, etcd Etcd) *cobra.Command {
	run := func(cmd *cobra.Command, find *jobFinder, args []string) error {
		job, agents, err := find.job(cmd.Context(), jobOf(args))
		if err != nil {
			return err
		}
		failed := unanswered(job)
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
