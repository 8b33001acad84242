package jobs

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/rendezvous"
)

// maxAsked is how many agents are asked at the same time.
const maxAsked = 64

// Remote asks the agents of a job whose nodes meet at an endpoint. Those that do not answer are in the job, with the problem, but not among
// the agents.
func Remote(ctx context.Context, contacts rendezvous.Contacts, runID, endpoint string) (*status.Job, []Agent) {
	all := make([]Agent, len(contacts.Agents))
	var asking sync.WaitGroup
	slots := make(chan struct{}, maxAsked)
	for i, c := range contacts.Agents {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			client := control.NewClient(func(ctx context.Context) (net.Conn, error) { return contacts.Dial(ctx, c) })
			all[i] = Ask(ctx, client, status.Node{ID: c.Node.ID, Host: c.Node.Host, Addr: c.Node.Addr})
			all[i].Node.Job, all[i].Node.Endpoint = runID, endpoint // as the user calls them
		})
	}
	asking.Wait()
	job := &status.Job{Version: status.Version, ID: runID, Endpoint: endpoint}
	for _, j := range status.Jobs(Nodes(all)) { // it is one
		job.Nodes = append(job.Nodes, j.Nodes...)
	}
	return job, slices.DeleteFunc(all, func(a Agent) bool { return a.Node.Problem != "" })
}

// WithNode returns the agent of a node, by its host, its name, or its node rank.
func WithNode(agents []Agent, name string) (Agent, error) {
	rank, err := strconv.Atoi(name)
	var found []Agent
	for _, a := range agents {
		n := a.Node
		if n.Host == name || n.ID == name || n.Addr == name || err == nil && n.Round != nil && n.Round.NodeRank == rank {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Agent{}, &NoJobError{fmt.Sprintf("no node %q answers, only: %s", name, nodeNames(agents))}
	default:
		return Agent{}, &NoJobError{fmt.Sprintf("%d nodes are on %q: give a node rank, or a name: %s", len(found), name, nodeNames(found))}
	}
}

// nodeNames names nodes, separated by commas.
func nodeNames(agents []Agent) (names string) {
	for i, a := range agents {
		if i > 0 {
			names += ", "
		}
		names += a.Node.ID
		if a.Node.Round != nil {
			names += fmt.Sprintf(" (node rank %d)", a.Node.Round.NodeRank)
		}
	}
	return names
}
