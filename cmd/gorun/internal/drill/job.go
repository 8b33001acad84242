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

	builtin  bool   // it needs the built-in program
	needs    string // what the user's own program has to do for it; empty: nothing
	job      job
	restarts int                    // that the fault costs; negative: the steps check that
	length   time.Duration          // that the steps take beside Options.Timeout
	steps    func(nodes int) []step // what happens after the first nodes compute together and before the job is to end well
}

// A job describes the job of a scenario. The zero value is a job that loses no node, and whose first node hosts the rendezvous.
type job struct {
	first  int // how many nodes start first; 0: all; negative: all but so many
	spare  int // how many nodes the job can do without
	enough int // how many nodes are enough for the job; 0: all but spare

	etcd     int           // how many members of etcd run by themselves; 0: nodes host the rendezvous
	hosts    int           // how many nodes, the first ones, host the rendezvous; 0: one
	ttl      time.Duration // after which a silent node is gone; 0: gorun's
	lastCall time.Duration // how long a round that is not full waits for more nodes; 0: long

	flags []string // more flags for gorun
	ranks bool     // every node asks for its rank
	hang  bool     // workers that cannot compute any more hang; otherwise they fail

	network bool // every node has a network of its own, which can be cut
	memory  bool // the memory of a worker can be bounded
	unread  bool // workers of the last node write all the time, and nobody reads that
	disk    bool // the last node has a small disk for log files, and its workers write to them
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
		return max(1, min(j.enough, nodes-2)) // two may be told to end at once
	}
	return max(1, nodes-j.spare)
}

// isHost reports whether a node hosts the rendezvous.
func (j job) isHost(node int) bool { return j.etcd == 0 && node < max(1, j.hosts) }

// upTo returns the nodes from first up to end, which is not one of them.
func upTo(first, end int) (nodes []int) {
	for i := first; i < end; i++ {
		nodes = append(nodes, i)
	}
	return nodes
}
