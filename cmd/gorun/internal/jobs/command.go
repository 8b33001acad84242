package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/env/network"
)

// A Result is what one agent has made of a command.
type Result struct {
	Node  status.Node
	Reply *control.Reply
	Err   error // nil: it carries it out
}

// IsForOne reports whether one agent has to carry out a command, for the whole job.
func IsForOne(kind agent.CommandKind) bool {
	return kind == agent.CommandRestart || kind == agent.CommandScale
}

// Command asks all agents for something, at the same time. If one has to do it for all, it asks the others if the first one does not do it at
// once, and returns the Result of one that does it.
func Command(ctx context.Context, agents []Agent, command agent.Command) []Result {
	results := make([]Result, len(agents))
	ask := func(i int) {
		results[i].Node = agents[i].Node
		c := command
		if r := agents[i].Node.Round; r != nil && c.Kind == agent.CommandRestart {
			c.Round = r.ID // another agent may have begun the next one
		}
		results[i].Reply, results[i].Err = agents[i].Client.Command(ctx, c)
	}
	if IsForOne(command.Kind) {
		return askForOne(results, ask)
	}
	var asking sync.WaitGroup
	for i := range agents {
		asking.Go(func() { ask(i) })
	}
	asking.Wait()
	if command.Kind == agent.CommandStop || command.Kind == agent.CommandKill {
		forgiveEnded(ctx, agents, results)
	}
	return results
}

// soon is how long the first agent has before the others are asked too.
const soon = time.Second

// askForOne asks the first agent, and, unless that soon carries it out, all others at the same time: without etcd each takes ten seconds to
// refuse. It returns the Result of the first that carries it out, or all Results.
func askForOne(results []Result, ask func(i int)) []Result {
	answers := make(chan int, len(results))
	begin := func(from, to int) {
		for i := from; i < to; i++ {
			go func() {
				ask(i)
				answers <- i
			}()
		}
	}
	asked, wait := min(1, len(results)), time.After(soon)
	begin(0, asked)
	for refused := 0; refused < len(results); {
		select {
		case i := <-answers:
			if results[i].Err == nil {
				return results[i : i+1]
			}
			refused++
		case <-wait:
		}
		begin(asked, len(results))
		asked = len(results)
	}
	return results
}

// forgiveEnded removes the errors of agents that have ended, if at least one agent has answered. Since one agent stops the whole job, others
// may end before they have answered.
func forgiveEnded(ctx context.Context, agents []Agent, results []Result) {
	if !slices.ContainsFunc(results, func(r Result) bool { return r.Err == nil }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for i := range results {
		if results[i].Err != nil && awaitEnd(ctx, agents[i]) {
			results[i].Err = nil
		}
	}
}

// awaitEnd waits until an agent has ended. It returns false if ctx ends first, and as soon as the agent answers.
func awaitEnd(ctx context.Context, a Agent) bool {
	for ctx.Err() == nil {
		_, err := a.Client.Status(ctx)
		if err == nil || control.HasEnded(err) {
			return err != nil
		}
		network.Pause(ctx, endingPause)
	}
	return false
}

// endingPause is the time between two questions to an agent that is ending.
const endingPause = 20 * time.Millisecond

// WithRank returns the agent that has the worker with a rank.
func WithRank(agents []Agent, rank int) ([]Agent, error) {
	for _, a := range agents {
		if slices.ContainsFunc(a.Node.Workers, func(w status.Worker) bool { return w.Rank == rank }) {
			return []Agent{a}, nil
		}
	}
	return nil, &NoJobError{fmt.Sprintf("the job has no rank %d on the nodes that answer", rank)}
}

// ShowStacks shows what the workers of a node were doing: a line for each, and where the files are.
func ShowStacks(of Result) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(agent.Printable(fmt.Sprintf(format, args...)) + "\n") }
	r, host := of.Reply, of.Node.Host
	for _, s := range r.Stacks {
		line("rank %d (local rank %d, pid %d) on %s: %s", s.Rank, s.LocalRank, s.Pid, host, cmp.Or(s.Doing, "nothing is known of it"))
	}
	if r.Files != "" {
		line("files on %s: %s", host, r.Files)
	}
	if r.Hint != "" {
		line("more on %s: %s", host, r.Hint)
	}
	return b.String()
}
