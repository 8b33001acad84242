// Package drill breaks jobs on purpose, to check that gorun does what it promises.
//
// A [Scenario] is a job on several agents of this machine, and one fault. [Run] starts the agents as a user would, with
// gorun's command line. The workers are built in: they compute together continuously, and report to the drill over a socket.
// The drill judges and measures only what workers report and how processes end; it does not query agents.
//
//	Run ── steps of a scenario ──▶ testbed ─ starts, kills ─▶ agents, etcd
//	         ▲                       ▲                          │ start
//	         └──── judged ── world ◀─┴── report by a socket ─ workers
//
// In every scenario, this must hold in addition to what its steps wait for:
//
//  1. A rank starts once in a round, and all workers of a round know the same world, master and restarts.
//  2. A node has workers of one round at a time: the old ones are dead when new ones start, or are in the new round.
//  3. Nodes that are in two rounds, one after the other, keep their order.
//  4. Sums are right, and the state that workers keep does not go backwards as long as one of them lives.
//  5. With --on-failure=replace, the fault ends only those workers that it hits; the others keep their ranks, unless nodes come
//     or go, and learn who has died of what. With restart, all are started again.
//  6. Agents end when they are meant to, with exit code 0, and not before. All of them name the same root cause.
//  7. The job has used as many restarts as the fault costs.
//  8. Nothing is left in the end: no process, no port, no file.
package drill

import "time"

// A Policy is a value of --on-failure.
type Policy string

// The policies.
const (
	Restart Policy = "restart"
	Replace Policy = "replace"
)

// Policies are all of them.
var Policies = []Policy{Restart, Replace}

// A Scenario is a fault, and what the job must do after it.
type Scenario struct {
	Name  string
	About string // one line, for people

	builtin bool // it needs the built-in program
	job     job
	length  time.Duration          // that the steps take beside Options.Timeout
	steps   func(nodes int) []step // from when the nodes that are there first compute together until the job is to end well
}

// A job describes the job of a scenario. The zero value is a job that loses no node, and whose first node hosts the rendezvous.
type job struct {
	policy   Policy
	etcd     int           // members by themselves; 0: nodes host the rendezvous
	hosts    int           // how many, the first ones; 0: one
	network  bool          // every node has its own, which can be cut
	first    int           // nodes that are there first; 0: all; negative: all but so many
	spare    int           // nodes that the job can do without
	enough   int           // how many nodes are enough for the job; 0: all but spare
	unread   bool          // workers of the last node write all the time, and nobody reads it
	watch    bool          // gorun watches for workers that hang
	memory   bool          // that of a worker can be bounded
	disk     bool          // the last node has a small one for log files, and its workers write to them
	hang     bool          // workers that cannot compute any more hang; otherwise they fail
	ttl      time.Duration // after which a silent node is gone; 0: gorun's
	lastCall time.Duration // for which a round that is not full waits for more nodes; 0: long
	eager    bool          // workers that fail again and again are started again without a pause
	budget   int           // --max-restarts; 0: 3
	restarts int           // that the fault costs; negative: the steps check that
	ranks    bool          // nodes ask for theirs
}

// members returns the number of etcd members.
func (j job) members() int { return max(1, j.etcd, j.hosts) }

// begin returns how many of the nodes start first.
func (j job) begin(nodes int) int {
	if j.first <= 0 {
		return nodes + j.first
	}
	return j.first
}

// least returns how many nodes are enough for the job.
func (j job) least(nodes int) int {
	if j.enough > 0 {
		return min(j.enough, nodes)
	}
	return max(1, nodes-j.spare)
}

// upTo returns the nodes from first to last, without last.
func upTo(first, last int) (nodes []int) {
	for i := first; i < last; i++ {
		nodes = append(nodes, i)
	}
	return nodes
}
