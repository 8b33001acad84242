package status

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Jobs puts the nodes of each job together. Jobs are in the order of their IDs. Two jobs may have the same ID, if their nodes meet at
// different places; without a place, each node is a job.
func Jobs(nodes []Node) []Job {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.rank(), b.rank()), a.Started.Compare(b.Started), cmp.Compare(a.Pid, b.Pid))
	})
	var jobs []Job
	for _, n := range sorted {
		last := len(jobs) - 1
		if last < 0 || n.Endpoint == "" || jobs[last].ID != n.Job || jobs[last].Endpoint != n.Endpoint {
			jobs = append(jobs, Job{Version: Version, ID: n.Job, Endpoint: n.Endpoint})
			last++
		}
		jobs[last].Nodes = append(jobs[last].Nodes, n)
	}
	return jobs
}

// rank is the node's rank in its round; without a round it is greater than any rank.
func (n *Node) rank() int {
	if n.Round == nil {
		return math.MaxInt
	}
	return n.Round.NodeRank
}

// Newest returns the node that knows the newest round of the job; nil: no node has answered.
func (j *Job) Newest() (newest *Node) {
	for i := range j.Nodes {
		n := &j.Nodes[i]
		if n.Problem == "" && (newest == nil || n.roundID() > newest.roundID()) {
			newest = n
		}
	}
	return newest
}

// String is such as "round 2 of 1 node and 4 ranks".
func (r *Round) String() string {
	return fmt.Sprintf("round %d of %s and %s", r.ID, count(r.Nodes, "node"), count(r.WorldSize, "rank"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (n *Node) roundID() int {
	if n.Round == nil {
		return 0
	}
	return n.Round.ID
}

// Failure returns the last failure of a worker, and its node; nil: none has failed.
func (j *Job) Failure() (last *Failure, at *Node) {
	for i := range j.Nodes {
		if f := j.Nodes[i].Failure; f != nil && (last == nil || f.At.After(last.At)) {
			last, at = f, &j.Nodes[i]
		}
	}
	return last, at
}

// A NodeEvent is an event, and the node that has seen it.
type NodeEvent struct {
	Event
	Node *Node
}

// Events returns the last n events of all nodes, by the clocks of these. Of those that several nodes report in the same words, it returns
// the first one.
func (j *Job) Events(n int) []NodeEvent {
	var all []NodeEvent
	for i := range j.Nodes {
		node := &j.Nodes[i]
		for _, e := range node.Events {
			all = append(all, NodeEvent{e, node})
		}
	}
	slices.SortStableFunc(all, func(a, b NodeEvent) int { return a.At.Compare(b.At) })
	var list []NodeEvent
	for _, s := range all {
		same := func(other NodeEvent) bool {
			return other.Kind == s.Kind && other.Text == s.Text && other.Node != s.Node && s.At.Sub(other.At) < sameTime
		}
		if !slices.ContainsFunc(list, same) {
			list = append(list, s)
		}
	}
	return list[max(0, len(list)-n):]
}

// sameTime is how far apart nodes may report the same event.
const sameTime = 10 * time.Second

// Find returns the jobs with this ID, or with an agent of this pid.
func Find(jobs []Job, name string, pid int) (found []Job) {
	for _, j := range jobs {
		if j.ID == name || slices.ContainsFunc(j.Nodes, func(n Node) bool { return pid > 0 && n.Pid == pid }) {
			found = append(found, j)
		}
	}
	return found
}

// Names returns the IDs of jobs, separated by commas.
func Names(jobs []Job) string {
	var names []string
	for _, j := range jobs {
		names = append(names, j.ID)
	}
	return strings.Join(slices.Compact(names), ", ")
}
