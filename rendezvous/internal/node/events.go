package node

import (
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// An event is something that has happened: a call of this package's API, the answer to a request, or news from the
// store or another agent. Events are plain data, so that they can be printed and replayed.
type event interface{ apply(m *stateMachine) }

// Calls of the API, and time.
type (
	// begun: the driver is there. It is the first event.
	begun struct{}
	// ticked: the time has come for which stateMachine.wake has asked.
	ticked struct{}
	// joinCalled: a Join waits. Other agents reach this one at agentPort.
	joinCalled struct {
		id        int
		self      rendezvous.Node
		port      int // reserved for a master; 0: none yet
		agentPort int
	}
	// joinCancelled: the context of a Join has ended.
	joinCancelled struct {
		id  int
		err error
	}
	// portReserved answers reservePort.
	portReserved struct {
		join, port int
		err        error
	}
	// reportCalled: this node's part of a round has ended.
	reportCalled struct {
		id, round int
		doc       reportDoc
	}
	// leaving: this node ends its workers for good, and is about to leave the job.
	leaving struct{}
	// leaveCalled: this node leaves the job.
	leaveCalled struct{ why error }
)

// News from the store.
type (
	// answered: a request has been carried out, or has failed.
	answered struct {
		kind kind
		request
		err error
	}
	// jobChanged brings changes of the keys below job/. None: the watch has begun, and changes before it may be missing.
	jobChanged struct{ events []store.Event }
	// nodesChanged: something that only a leader reads has changed.
	nodesChanged struct{}
)

// News from other agents.
type (
	// agentEnded: the liveness connection of another agent has broken, and its port refuses connections.
	agentEnded struct{ key, addr string }
	// agentConnected: the number of liveness connections from another agent to this one has changed.
	agentConnected struct {
		key  string
		more int
	}
	// peerObserved: a peer has given a sign of life at that time, or a call that began then has failed.
	peerObserved struct {
		id  string
		at  time.Time
		err error
	}
	// peersConfirmed answers confirmPeers.
	peersConfirmed struct{ unreached []unreachedWorker }
	// rank0Called: the agent of rank 0 has answered, or has not answered so far.
	rank0Called struct {
		callRank0
		err         error         // nil: it has answered
		unreachable bool          // as isUnreachable says
		lasted      time.Duration // until this call
		last        bool          // it is not called again
	}
)

// An unreachedWorker is a worker that neither a worker of this node nor its agent can reach.
type unreachedWorker struct {
	node peerDoc
	addr string
}
