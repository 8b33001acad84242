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
	cmd := newJobCommand(here, etcd, "stop [flags] JOB", "End a running job",
		"It ends as after SIGTERM to each gorun of the job: the workers have --shutdown-timeout to end. Its exit code is 143, unless all "+
			"workers exit 0.",
		func(cmd *cobra.Command, find *jobFinder) error {
			kind := agent.CommandStop
			if kill {
				kind = agent.CommandKill
			}
			return find.steer(cmd, agent.Command{Kind: kind}, "is stopping on")
		})
	ownFlag(cmd, "kill", "", "", "kill the workers at once", setTo(&kill, parseSwitch))
	return cmd
}

func restartCommand(here host, etcd Etcd) *cobra.Command {
	return newJobCommand(here, etcd, "restart [flags] JOB", "Start all workers of a running job again, in a new round",
		"This is no failure: it does not count for --max-restarts. With --on-failure=replace, workers that take part live on, and enter the "+
			"new round.",
		func(cmd *cobra.Command, find *jobFinder) error {
			return find.steer(cmd, agent.Command{Kind: agent.CommandRestart}, "is starting another round on")
		})
}

func drainCommand(here host, etcd Etcd) *cobra.Command {
	force := false
	cmd := newJobCommand(here, etcd, "drain [flags] JOB NODE", "Take a node out of a running job",
		"The node leaves as after SIGTERM to its gorun, and the others go on in a new round. This is refused if they were fewer than --nnodes "+
			"allows. NODE is its host, its name or its node rank.",
		func(cmd *cobra.Command, find *jobFinder) error {
			job, agents, err := find.job(cmd.Context())
			if err != nil {
				return err
			}
			node, err := jobs.WithNode(agents, find.other)
			if err != nil {
				return err
			}
			c := agent.Command{Kind: agent.CommandDrain, Force: force}
			return command(cmd, job, []jobs.Agent{node}, c, saying(job, "goes on without the node on"))
		})
	ownFlag(cmd, "force", "", "", "take it out even if the job then ends", setTo(&force, parseSwitch))
	return cmd
}

func scaleCommand(here host, etcd Etcd) *cobra.Command {
	return newJobCommand(here, etcd, "scale [flags] JOB MIN:MAX", "Change how many nodes a running job may have",
		"If the present round has more nodes than MAX, another one begins at once: the nodes with the lowest ranks stay, and the others wait "+
			"as spares, without workers. If it has fewer than MIN, it goes on, but no other one begins before there are enough.",
		func(cmd *cobra.Command, find *jobFinder) error {
			least, most, err := parseNnodes(find.other)
			if err != nil {
				return usagef("%s: %w", quote(find.other), err)
			}
			c := agent.Command{Kind: agent.CommandScale, Nodes: [2]int{least, most}}
			return find.steer(cmd, c, fmt.Sprintf("may have %d to %d nodes from now on: recorded by", least, most))
		})
}

func stacksCommand(here host, etcd Etcd) *cobra.Command {
	return newJobCommand(here, etcd, "stacks [flags] [JOB]", "Write what the workers of a job are doing to files, and say it in a line for each",
		"The workers go on undisturbed. docs/hang.md says for which programs gorun finds stacks.",
		func(cmd *cobra.Command, find *jobFinder) error {
			job, agents, err := find.job(cmd.Context())
			if err != nil {
				return err
			}
			return command(cmd, job, agents, agent.Command{Kind: agent.CommandStacks}, jobs.ShowStacks)
		})
}

// steer asks the agents of the job for something, and says in a line for each that it is done.
func (f *jobFinder) steer(cmd *cobra.Command, c agent.Command, done string) error {
	job, agents, err := f.job(cmd.Context())
	if err != nil {
		return err
	}
	return command(cmd, job, agents, c, saying(job, done))
}

// saying returns what says that an agent has done something.
func saying(job *status.Job, done string) func(jobs.Result) string {
	return func(r jobs.Result) string {
		return agent.Printable(fmt.Sprintf("job %s %s %s (pid %d)", job.ID, done, r.Node.Host, r.Node.Pid)) + "\n"
	}
}

// command asks agents of a job for something, and prints what show returns for each that does it.
func command(cmd *cobra.Command, job *status.Job, agents []jobs.Agent, c agent.Command, show func(jobs.Result) string) error {
	var failed []error
	if c.Kind != agent.CommandDrain {
		failed = unanswered(job)
	}
	for _, r := range jobs.Command(cmd.Context(), agents, c) {
		if r.Err != nil {
			failed = append(failed, fmt.Errorf("job %s on %s: %w", job.ID, r.Node.Host, r.Err))
			continue
		}
		if _, err := io.WriteString(cmd.OutOrStdout(), show(r)); err != nil {
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
