// Package endpoint is one rank's end of its connections. It connects to a peer when the first operation needs it, carries out sends and
// receives, and turns the death of a peer into errors that name the peer.
//
// A group has a communicator. All communicators share one stream per peer. The messages of a communicator carry its context ID, and it
// matches them by itself (package matching). A communicator fails once and for good. The first failure ends all operations and is
// the error of every later call. The rank that finds it notifies all members, and connects to them if it has to. Package diagnosis says which
// rank is at fault.
//
// A short message is eager: it uses credit, which the receiver returns when it has consumed messages. For a longer message the sender
// announces only the header (RTS), and sends the bytes when the receiver has posted a buffer (CTS), in frames that take turns with what else is
// to be written. So no sender can fill the memory of a receiver, a message without a receive blocks no message behind it, and neither does a long
// one. Package wire has the frames and the limits.
//
// One mutex guards all state, and the callers' buffers while bytes move to and from them. Moving bytes never blocks. Bytes are copied and
// encrypted with the mutex held: in all-reduces of 4 MiB by two ranks over loopback, goroutines wait for it in 4 % of the time with TLS,
// and in 3 % with one connection or three, so another way would not pay. If a stream is a
// transport.Stream, bytes go straight from the caller's buffer to the stream and back: Send writes as much as there is room for, and Wait
// polls (package progress). If the stream is memory, short messages of blocking calls go at once from buffer to buffer (now.go). Any other
// net.Conn has two goroutines, a reader and a writer.
//
// The state is in endpoint.go and communicator.go. One peer: peer.go, connect.go, stream.go, inbox.go, lost.go. One
// operation: op.go, send.go, recv.go, arrive.go, wait.go. How a communicator or a round ends: fail.go, notify.go,
// leave.go. What ranks report of their calls and waits: calls.go, stall.go, waitreport.go.
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
	"github.com/gorun/gorun/comm/internal/transport"
)

const (
	// flushTimeout is how long Close waits for peers that do not read.
	flushTimeout = 5 * time.Second
	// reachTimeout is how long it may take to connect to a rank only to notify it of a failure, or that this rank leaves.
	reachTimeout = time.Second
	// crossTimeout is how long a dial that lost against the peer's own waits for it before it tries again.
	crossTimeout = time.Second
)

// ErrClosed is the error of operations on a communicator or endpoint that this rank has closed.
var ErrClosed = errors.New("the group is closed")

// Options tune an Endpoint.
type Options struct {
	ConnectTimeout time.Duration // limit for reaching one peer; 0: none
	// News is how long this rank waits, when a peer is gone, before it says that the peer is at fault: the peer may have
	// gone because of another failure, and the news of that may still be under way. It does not wait if the peer is dead
	// and was connected for long enough to send such news.
	News time.Duration
	// Revocable says that Revoke is called when a peer has died, soon after its streams have ended. Until then, for a while, this rank does not
	// judge by itself. NotRevocable takes that back.
	Revocable bool
	// Liveness says whether a rank lives whose stream has ended without goodbye, or that cannot be reached. It may take a moment.
	Liveness func(rank int) diagnosis.Liveness // nil: Unknown
	// State says in which state the process of a silent rank is, or nothing.
	State func(rank int) string // nil: nothing
	Log   *slog.Logger          // nil: silent
	progress.Options
}

// An Endpoint is this rank's end of the streams to its peers. Ranks are world ranks throughout.
type Endpoint state

type state struct {
	rank int
	tr   transport.Transport
	opt  Options
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup // readers, writers, dials

	mu        sync.Mutex
	peers     []*peer
	comms     map[uint64]*communicator
	early     map[uint64][]*matching.Message // of communicators that this rank has not opened yet; leaves and failures, too
	retired   []retired                      // closed communicators, oldest first
	stalls    []*stall                       // oldest first
	parked    int                            // goroutines that wait for operations without polling
	sends     map[uint64]*operation          // announced sends that wait for a CTS
	nextID    uint64
	moved     uint64 // how often bytes of announced messages have gone or come: a whole one may take long
	closed    bool
	revoked   *diagnosis.Failure // by Revoke
	revoking  chan struct{}      // closed by Revoke
	final     chan struct{}      // closed by NotRevocable
	cause     diagnosis.Cause    // of this rank's last failure
	causeDoc  []byte             // the cause, as it is sent
	causeSent []chan struct{}    // each is closed when a peer has been told of it, or never will be

	engine     *progress.Engine
	readBuffer []byte // what is read from streams before it is known what it is
}

// New returns the endpoint of rank in a world of size and starts serving on tr, which it owns from now on.
func New(tr transport.Transport, rank, size int, opt Options) *Endpoint {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	e := &state{
		rank: rank, tr: tr, opt: opt,
		peers:      make([]*peer, size),
		comms:      map[uint64]*communicator{},
		early:      map[uint64][]*matching.Message{},
		sends:      map[uint64]*operation{},
		readBuffer: make([]byte, readAhead),
		revoking:   make(chan struct{}),
		final:      make(chan struct{}),
	}
	e.engine = progress.New(&e.mu, size, opt.Options)
	e.ctx, e.stop = context.WithCancel(context.Background())
	for r := range e.peers {
		e.peers[r] = e.newPeer(r)
	}
	tr.Serve(e.api())
	return e.api()
}

// Close leaves in good order. It accepts no more streams, writes what is queued, says goodbye to the peers, and waits until they have read
// that, unless Revoke has been called or is called meanwhile. It waits for streams that are being opened: only for a moment, unless a message
// is queued for one. When it returns, nothing that this endpoint started is still running. Receives under way, and sends whose receiver has not
// asked for the bytes, end with ErrClosed.
func (e *Endpoint) Close() error {
	in := e.lock()
	if in.closed {
		in.unlock()
		return nil
	}
	in.closed = true
	for _, c := range e.comms {
		c.close()
	}
	var opening []chan struct{}
	openTimeout := reachTimeout
	for _, p := range e.peers {
		if !in.isAwaited(p) {
			continue
		}
		hasMessages := p.out.HasOps()
		if hasMessages {
			openTimeout = flushTimeout
		}
		if hasMessages || e.cause.Failure == nil { // otherwise it may be as dead as the rank at fault
			opening = append(opening, p.resolved)
		}
	}
	in.unlock()

	limit := time.Now().Add(flushTimeout)
	e.waitAll(opening, openTimeout)
	err := e.tr.Close() // who was connecting is up now, and gets a goodbye
	in = e.lock()
	var goodbyes, answers []chan struct{}
	for _, p := range e.peers {
		if p.state == stateUp && e.revoked == nil {
			goodbyes = append(goodbyes, in.sendGoodbye(p))
			if p.link.Memory == nil { // otherwise what has been written stays there to be read
				answers = append(answers, p.gone)
			}
		}
	}
	in.unlock()

	e.waitAll(goodbyes, time.Until(limit))
	e.waitAll(answers, time.Until(limit))
	e.stop()
	in = e.lock()
	for _, p := range in.peers {
		in.drop(p, &diagnosis.Failure{Kind: diagnosis.Closed, Rank: e.rank, Text: ErrClosed.Error(), Err: ErrClosed})
	}
	in.unlock()
	e.engine.Close()
	e.wg.Wait()
	return err
}

// waitAll waits until all are closed, at most for limit, and not after Revoke: then nobody needs to hear of this rank.
func (e *Endpoint) waitAll(all []chan struct{}, limit time.Duration) {
	timeout := time.After(limit)
	for _, c := range all {
		select {
		case <-c:
		case <-timeout:
			return
		case <-e.revoking:
			return
		}
	}
}
