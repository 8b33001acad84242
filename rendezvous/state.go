package rendezvous

import (
	"time"

	"github.com/gorun/gorun/env/death"
)

// Rules are the settings of a job that determine how rounds form.
type Rules struct {
	Min, Max    int           // nodes of a round
	MaxRestarts int           // the job's budget
	LastCall    time.Duration // how long more nodes are waited for once there are Min; State.lastCall may be longer
	JoinTimeout time.Duration // how long to wait for Min
	ScaleUp     ScaleUp
	Lease       time.Duration // a node that gives no sign of life for so long is gone
}

// A ScaleUp says when a newcomer joins a job whose round has room for it. Its zero value is not valid.
type ScaleUp string

const (
	// ScaleImmediate ends the round for it, after the last call or when the next one would be full.
	ScaleImmediate ScaleUp = "immediate"
	// ScaleOnRestart lets it in when there is a new round for another reason.
	ScaleOnRestart ScaleUp = "on-restart"
	// ScaleNever lets it in only for a node that the last round had.
	ScaleNever ScaleUp = "never"
)

// A Candidate is a node that may become a member of a round.
type Candidate struct {
	Key       string // of the agent, the same for all its life
	Node      Node
	Port      int   // on the node, for the master if this becomes rank 0
	AgentPort int   // on the node, at which the agent answers the others
	Since     int64 // the lower, the longer it has been here
	Try       int   // number of the agent's last Join
	LeaseOnly bool  // only its lease shows the leader whether the agent has ended
	Joining   bool  // the last Join waits, or has got its round; otherwise it was cancelled
	Leaving   bool  // it ends its workers for good, and will not join again
}

// A Formed is a round on record.
type Formed struct {
	ID       int
	Members  []Candidate  // in rank order
	Restarts int          // of the job's budget, used before it
	Cause    *death.Death // as in Round
	Why      string       // as in Round
	Gone     []GoneNode   // as in Round
	Losses   []Loss
	New      map[string]time.Duration // for how long members are newcomers, by Key: they came when the job had a round
	Late     map[string]int           // who was not waiting then, but busy with an earlier round: Try, by Key
	Apart    []Candidate              // nodes that are here, but left out because they are apart from a member
}

// An Ending says why a round is over although the job is not.
type Ending struct {
	Why      string     `json:"why"`
	Failure  *Failure   `json:"failure,omitempty"`   // of a worker, that is the cause; nil: there is another
	Gone     []GoneNode `json:"gone,omitempty"`      // as in NewRoundError
	Restarts int        `json:"restarts"`            // of the job's budget, used with it
	Lost     []string   `json:"lost,omitempty"`      // hosts of newcomers that have not stayed
	NewHosts []string   `json:"new_hosts,omitempty"` // hosts of the newcomers for which the round has ended
	Apart    []string   `json:"apart,omitempty"`     // members, by Key, that others cannot reach

	Age time.Duration `json:"age"` // of the round when it ended, as far as the leader knew
}

// A Report is what a node reported about the last round, last: success, if the other fields are empty.
type Report struct {
	Key     string // Candidate.Key
	Failure *Failure
	Restart string   // why somebody wants another round; empty: nobody does
	Left    *Outcome // why it has left the job. If too few nodes are left, the job ends with this, unless it is success. Nil: it has not left
}

// A State is everything that Form needs for its decision.
type State struct {
	Rules
	Last    *Formed       // nil: no round has formed; Key, Try, and ID, Host and Nproc of Node are all that counts of its members
	Age     time.Duration // of Last, as far as the leader knows
	Over    *Ending       // of Last; nil: it is running
	Nodes   []Candidate   // that are here now
	Reports []Report      // on Last, the first one first
	Settled bool          // absent nodes are really gone: the leader itself has not just been cut off
	Stage   Stage         // of the last decision
	Waited  time.Duration // since Stage has been the same

	Unreachable []Unreachable

	nodeRanks nodeRanks            // in Last
	here      map[string]Candidate // Nodes, by Key
	succeeded map[string]bool      // members that have done their work
	failures  []Report             // of members, the first one first
	leaving   map[string]bool      // nodes that count as gone, because they are about to be
	leavers   []Candidate          // these nodes
	restart   string               // why somebody wants another round; empty: nobody does
	late      map[string]int       // as in Formed, now
	losses    []Loss
	apart     pairs
}

// A Decision is one of four: the job is closed, the last round is over, a round is formed, or nothing is to be done
// until there is news or After has passed.
type Decision struct {
	Close *Outcome
	Over  *Ending
	Form  *Formed
	Wait  string        // for people who wait to get in: what for
	Then  string        // what happens After
	Stage Stage         // for the next Form, with how long it has been the same
	After time.Duration // 0: ask again on news only
}
