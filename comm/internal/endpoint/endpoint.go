// Package endpoint is one rank's end of its connections to all others. It connects to peers when they are first needed, carries out
// sends and receives, and turns the death of a peer into errors that name it.
//
// Traffic is divided into communicators, one per group; all communicators share one stream per peer. Each has a context ID, which its
// messages carry, and matches them by itself (package matching). A communicator fails once and for good: the first failure ends every
// operation under way, is told to all members that are connected or come to be, and answers every later call and message. Package
// diagnosis says who is at fault.
//
// A short message travels at once (eager), against credit that the receiver returns as it consumes messages. A longer one sends only
// an envelope (RTS), and its bytes when the receiver has posted a buffer (CTS): a sender that floods fills nobody's memory, and a
// message that nobody awaits blocks nothing behind it. Package wire has the frames and the limits.
//
// One mutex guards all state, and the callers' buffers: it is held while bytes are moved to and from them, which never waits. Bytes go
// straight from the caller's buffer to the stream and back, where that is a transport.Stream: a Send writes what there is room for, and
// a Wait polls (package progress). Through memory short messages of blocking calls go at once, from buffer to buffer (now.go). Any other
// net.Conn has a reader and a writer, each a goroutine.
//
// The files: endpoint.go and communicator.go have the state; peer.go, connect.go, stream.go, inbox.go and lost.go are about one peer;
// op.go, send.go, recv.go, arrive.go and wait.go about one operation; fail.go and leave.go about how a communicator ends; calls.go,
// stall.go and report.go about what ranks tell each other of their calls and waits.
package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/progress"
	"github.com/gorun/gorun/comm/transport"
)

const (
	// flushTimeout is how long Close waits for peers that do not read.
	flushTimeout = 5 * time.Second
	// crossTimeout is how long a dial that lost against the peer's own waits for it before it tries again.
	crossTimeout = time.Second
)

// ErrClosed is the error of operations on a communicator or endpoint that this rank has closed.
var ErrClosed = errors.New("the group is closed")

// Options tune an Endpoint.
type Options struct {
	ConnectTimeout time.Duration // limit for reaching one peer; 0: none
	// News is how long news of a failure may be under way from one rank while another has gone because of it: so long a rank
	// that is gone, and has not died for certain, is not blamed.
	News time.Duration
	// Liveness says what has become of a rank whose stream ended without goodbye. It may wait a moment to find out.
	Liveness func(rank int) diagnosis.Liveness // nil: Unknown
	// State says what a rank that does not answer is in, or nothing.
	State func(rank int) string // nil: nothing
	Log   *slog.Logger          // nil: silent
	progress.Options
}

// An Endpoint is this rank's end of the streams to its peers. Ranks are world ranks throughout.
type Endpoint struct {
	rank int
	tr   transport.Transport
	opt  Options
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup // readers, writers, dials

	mu            sync.Mutex
	peers         []*peer
	comms         map[uint64]*Communicator
	early         map[uint64][]*matching.Message // for communicators that this rank has not opened yet
	earlyFailures map[uint64]earlyFailure        // failures of such communicators
	retired       []retired                      // closed communicators, oldest first
	stalls        []*stall                       // oldest first
	sends         map[uint64]*Op                 // rendezvous sends that wait for clear to send
	nextID        uint64
	closed        bool
	cause         diagnosis.Cause // of this rank's last failure
	causeSent     []chan struct{} // each is closed when a peer has been told of it, or never will be

	engine     *progress.Engine
	readBuffer []byte // what is read from streams before it is known what it is
}

// New returns the endpoint of rank in a world of size and starts serving on tr, which it owns from now on.
func New(tr transport.Transport, rank, size int, opt Options) *Endpoint {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	e := &Endpoint{
		rank: rank, tr: tr, opt: opt,
		peers:         make([]*peer, size),
		comms:         map[uint64]*Communicator{},
		early:         map[uint64][]*matching.Message{},
		earlyFailures: map[uint64]earlyFailure{},
		sends:         map[uint64]*Op{},
		readBuffer:    make([]byte, readAhead),
	}
	e.engine = progress.New(&e.mu, size, opt.Options)
	e.ctx, e.stop = context.WithCancel(context.Background())
	for r := range e.peers {
		e.peers[r] = e.newPeer(r)
	}
	tr.Serve(e)
	return e
}

// Close leaves in good order: what is queued is written first, peers are told, and have taken it, and nothing this endpoint
// started is still running when it returns. Receives under way and sends that nobody has asked for end with ErrClosed.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	for _, c := range e.comms {
		c.close()
	}
	var goodbyes, answers []chan struct{}
	for _, p := range e.peers {
		if p.state == stateUp {
			goodbyes = append(goodbyes, e.sendGoodbye(p))
			if p.link.Window == nil { // otherwise what has been written stays there to be read
				answers = append(answers, p.gone)
			}
		}
	}
	e.mu.Unlock()

	limit := time.Now().Add(flushTimeout)
	waitAll(goodbyes, time.Until(limit))
	waitAll(answers, time.Until(limit))
	e.stop()
	err := e.tr.Close()
	e.mu.Lock()
	for _, p := range e.peers {
		e.drop(p, &diagnosis.Failure{Kind: diagnosis.Left, Rank: e.rank, Text: ErrClosed.Error(), Err: ErrClosed})
	}
	e.mu.Unlock()
	e.engine.Close()
	e.wg.Wait()
	return err
}

// waitAll waits until all are closed, at most for limit.
func waitAll(all []chan struct{}, limit time.Duration) {
	timeout := time.After(limit)
	for _, c := range all {
		select {
		case <-c:
		case <-timeout:
			return
		}
	}
}
