// Package jobs is the side of people who look at running jobs: it finds the agents of a job, asks them, and shows what they say. render.go
// is pure.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
)

// answerTimeout is how long an agent may take to say its status. It asks its workers, which may take a second.
const answerTimeout = 3 * time.Second

// An Agent is one agent of a job. With a Record, it is a gorun launch instead, which has no Client and stands for all agents of its job.
type Agent struct {
	Client *control.Client
	Node   status.Node     // what it says, or, with a Problem, what is known of it otherwise
	Record *control.Record // of a gorun launch; nil: it is an agent
	path   string          // of its socket or record; empty: it is on another machine
	dead   bool            // it has not answered, and has ended
}

// Local asks all agents of this user on this machine, and finds each gorun launch of this user. It removes the sockets of agents that have
// ended. The error, a *NoJobError, says why agents cannot be found here.
func Local(ctx context.Context) ([]Agent, error) {
	paths, err := control.Sockets()
	if err != nil {
		return nil, &NoJobError{"jobs on this machine cannot be found: " + err.Error()}
	}
	found := make([]Agent, len(paths))
	var asking sync.WaitGroup
	for i, path := range paths {
		asking.Go(func() {
			pid, _ := control.PidIn(path)
			a := &found[i]
			*a = Ask(ctx, control.At(path), status.Node{Host: "this machine", Pid: pid})
			a.path, a.dead = path, a.dead && control.RemoveIfDead(path)
		})
	}
	asking.Wait()
	found = slices.DeleteFunc(found, func(a Agent) bool { return a.dead })
	return append(found, launchers()...), nil
}

// launchers returns each gorun launch of this user that runs on this machine.
func launchers() (list []Agent) {
	for _, path := range control.Records() {
		pid, _ := control.PidIn(path)
		a := Agent{Node: status.Node{Host: "this machine", Pid: pid}, path: path}
		r, err := control.ReadRecord(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has just ended
			continue
		case err != nil:
			a.Node.Problem = err.Error()
		default:
			a.Node.Job, a.Node.Endpoint, a.Record = r.Job, r.Endpoint, &r
		}
		list = append(list, a)
	}
	return list
}

// Expand returns what agents say. It replaces each gorun launch by all nodes of its job, which ask returns, and leaves out the agents of these
// nodes: some may be on this machine.
func Expand(agents []Agent, ask func(*control.Record) (*status.Job, error)) (nodes []status.Node) {
	agents = slices.Clone(agents)
	launched := make([]*status.Job, len(agents))
	var asking sync.WaitGroup
	for i := range agents {
		if a := &agents[i]; a.Record != nil {
			asking.Go(func() {
				var err error
				if launched[i], err = ask(a.Record); err != nil {
					a.Node.Problem, launched[i] = err.Error(), nil
				}
			})
		}
	}
	asking.Wait()
	for i, a := range agents {
		isOf := func(job *status.Job) bool { return job != nil && a.isOf(job) }
		if launched[i] != nil {
			nodes = append(nodes, launched[i].Nodes...)
		} else if a.Record != nil || !slices.ContainsFunc(launched, isOf) {
			nodes = append(nodes, a.Node)
		}
	}
	return nodes
}

// isOf reports whether an agent is one of a job. If it does not answer, the name of its socket decides.
func (a Agent) isOf(job *status.Job) bool {
	if a.Node.Problem != "" {
		return control.MayBeOf(a.path, job.ID)
	}
	return a.Node.Job == job.ID && a.Node.Endpoint == job.Endpoint
}

// Ask asks one agent, of which something is known.
func Ask(ctx context.Context, c *control.Client, known status.Node) Agent {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("it does not answer within %v", answerTimeout))
	defer cancel()
	n, err := c.Status(ctx)
	if err != nil {
		known.Problem = cmp.Or(err.Error(), "it does not answer")
		return Agent{Client: c, Node: known, dead: control.HasEnded(err)}
	}
	return Agent{Client: c, Node: *n}
}

// Nodes returns what agents say.
func Nodes(agents []Agent) []status.Node {
	nodes := make([]status.Node, len(agents))
	for i, a := range agents {
		nodes[i] = a.Node
	}
	return nodes
}

// A NoJobError says that no job can be found, or more than one is what somebody means.
type NoJobError struct{ text string }

// Error is one line.
func (e *NoJobError) Error() string { return e.text }

// Choose returns the job with this name, which may also be the pid of an agent of it, and its agents that answer. Without a name there must
// be one job. Agents that do not answer are nodes of the job too, each with its problem, if the names of their sockets fit.
func Choose(agents []Agent, name string) (*status.Job, []Agent, error) {
	answering := slices.DeleteFunc(slices.Clone(agents), func(a Agent) bool { return a.Node.Problem != "" })
	silent := slices.DeleteFunc(slices.Clone(agents), func(a Agent) bool { return a.Node.Problem == "" || name != "" && !a.mayMean(name) })
	all := status.Jobs(Nodes(answering))
	found := all
	if name != "" {
		pid, _ := strconv.Atoi(name) // 0: it is no number, and so no pid
		found = status.Find(all, name, pid)
	}
	switch {
	case len(found) == 1:
	case len(found) > 1 && name != "":
		return nil, nil, &NoJobError{fmt.Sprintf("%d jobs here have the name %q: give the pid of one of its agents, or of its gorun launch", len(found), name)}
	case len(found) > 1:
		return nil, nil, &NoJobError{"which job? These run here: " + status.Names(found)}
	case len(silent) > 0:
		return nil, nil, &NoJobError{fmt.Sprintf("gorun with pid %d does not say its job: %s", silent[0].Node.Pid, silent[0].Node.Problem)}
	case len(all) > 0:
		return nil, nil, &NoJobError{fmt.Sprintf("no job %q runs here, only: %s", name, status.Names(all))}
	default:
		return nil, nil, &NoJobError{"no job of yours runs on this machine; for one that runs elsewhere, give --rdzv-endpoint and --rdzv-id"}
	}
	job := found[0]
	for _, a := range agents {
		if a.Node.Problem != "" && job.Endpoint != "" && control.MayBeOf(a.path, job.ID) {
			a.Node.Job, a.Node.Endpoint = job.ID, job.Endpoint
			job.Nodes = append(job.Nodes, a.Node)
		}
	}
	of := slices.DeleteFunc(answering, func(a Agent) bool {
		return !slices.ContainsFunc(job.Nodes, func(n status.Node) bool { return n.Pid == a.Node.Pid && n.ID == a.Node.ID })
	})
	return &job, of, nil
}

// mayMean reports whether a name may be the pid or the job of an agent that does not answer.
func (a Agent) mayMean(name string) bool {
	return strconv.Itoa(a.Node.Pid) == name || control.MayBeOf(a.path, name)
}
