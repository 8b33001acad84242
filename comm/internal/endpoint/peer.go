package endpoint

import (
	"net"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/progress"
	"github.com/gorun/gorun/comm/internal/wire"
)

type peerState int

const (
	stateIdle peerState = iota // no stream; perhaps one is on its way
	stateUp                    // conn or stream is the stream
	stateGone                  // failure says why; final
)

// A peer is what this rank knows of another. Guarded by the endpoint's mutex, except where said.
type peer struct {
	ep           *state
	rank         int
	state        peerState
	wanted       bool            // some operation needs a stream
	dialing      bool            // this rank opens a stream
	unreachable  bool            // it could not, and is finding out why; the peer may still open one
	admitted     bool            // the peer's own dial has been let in and will be handed over
	saidGoodbye  bool            // the peer has said goodbye
	outputClosed bool            // nothing more is sent to it: this rank has said goodbye, or its round is over
	goodbye      chan struct{}   // this rank's; closed when it has been written, or never will be
	cause        diagnosis.Cause // that the peer has told of

	conn      net.Conn           // while up, if it blocks
	link      *progress.Conn     // the stream while up, else
	upSince   time.Time          // when it came up
	failure   *diagnosis.Failure // once gone
	suspicion string             // what its stream has last been suspected of, by who waited for it
	resolved  chan struct{}      // closed when up or gone
	gone      chan struct{}      // closed when gone

	in      inbox
	out     wire.Outbox[*operation]
	fault   error         // why a write has failed, if one has; the reader will find out more
	writing sync.Mutex    // the writer of a net.Conn holds it while it writes; it is taken before the endpoint's
	wake    chan struct{} // tells the writer of a net.Conn of work

	agreed                     agreed
	sent                       wire.SendCredit
	received                   wire.ReceiveCredit
	earlyLeaves, earlyFailures int                   // of groups that this rank has not opened
	inbound                    map[uint64]*operation // receives whose data frame will come, by the sender's id
}

// isAwaited reports whether a stream to p is being opened because an operation needs it.
func (e *state) isAwaited(p *peer) bool {
	return p.state == stateIdle && p.wanted && (p.dialing || p.admitted)
}

func (e *state) newPeer(rank int) *peer {
	return &peer{
		ep: e, rank: rank, link: e.engine.Conn(rank), inbound: map[uint64]*operation{}, wake: make(chan struct{}, 1),
		resolved: make(chan struct{}), gone: make(chan struct{}),
	}
}
