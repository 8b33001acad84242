package etcd

import (
	"context"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// An action is something that the driver is to do. Actions are plain data, as events are.
type action interface{ action() }

// A request is an action that takes its time, and is answered by an event.
type request interface {
	action
	kind() kind
	do(ctx context.Context, x *executor) answer
}

// What the callers of the API get.
type (
	// failJoin fails a Join, and releases its port.
	failJoin struct {
		id  int
		err error
	}
	// enterRound gives a Join its round. On rank 0 the port stays reserved until the workers have started.
	enterRound struct {
		join  int
		round rendezvous.Round
	}
	// reservePort reserves the master port on the node of rank 0.
	reservePort struct {
		join int
		addr string
		port int
	}
	// endRound ends the round that this node is in.
	endRound struct{ why error }
	// answerReport answers a Report or Leave.
	answerReport struct {
		id  int
		err error
	}
	// showReason tells people what a Join waits for.
	showReason struct{ reason string }
	// leaveJob takes the node out of the job. It is the last action.
	leaveJob struct {
		view    *view
		lease   clientv3.LeaseID
		round   int // that must do without this node; 0: none
		why     error
		futile  bool // nobody waits for it, or etcd is away
		unknown bool // the node has not enrolled
	}
	// logLine writes a line to the log.
	logLine struct {
		level slog.Level
		text  string
		args  []any
	}
)

// What goes on until it is stopped.
type (
	// watchJob watches job/ anew. If etcd has gone back, a watch that waits for a later revision would wait for ever.
	watchJob struct{}
	// watchNodes watches what only a leader reads.
	watchNodes struct{ on bool }
	// useSecret is by which agents know each other from now on.
	useSecret struct{ secret string }
	// monitorLeader keeps a liveness connection to the leader, and to no other leader; without a key, to none.
	monitorLeader struct{ key, addr string }
	// monitorPeer keeps a liveness connection to another agent.
	monitorPeer struct {
		id     string
		serial int
		key    string
		addr   string
	}
	// callWorker calls an address where a worker could not be reached, until somebody answers.
	callWorker struct {
		id     string
		serial int
		addr   string
	}
	// stopPeer ends monitorPeer or callWorker.
	stopPeer struct{ id string }
	// callRank0 calls the agent of rank 0 until it answers, for limit at most. There is one such call.
	callRank0 struct {
		join, round int
		self        rendezvous.Node
		rank0       rank0Doc
		limit       time.Duration
	}
	// hangUp ends callRank0.
	hangUp struct{}
	// confirmPeers calls workers that a worker of this node could not reach.
	confirmPeers struct {
		round int
		named []rendezvous.Peer
	}
	// probePeers finds out whether peers still answer.
	probePeers struct {
		job   string
		round int
		begun time.Time
		peers []probedPeer
	}
)

// A probedPeer is one that is to be probed.
type probedPeer struct {
	id     string
	serial int
	addr   string
}

func (failJoin) action()      {}
func (enterRound) action()    {}
func (reservePort) action()   {}
func (endRound) action()      {}
func (answerReport) action()  {}
func (showReason) action()    {}
func (leaveJob) action()      {}
func (logLine) action()       {}
func (watchJob) action()      {}
func (watchNodes) action()    {}
func (useSecret) action()     {}
func (monitorLeader) action() {}
func (monitorPeer) action()   {}
func (callWorker) action()    {}
func (stopPeer) action()      {}
func (callRank0) action()     {}
func (hangUp) action()        {}
func (confirmPeers) action()  {}
func (probePeers) action()    {}
