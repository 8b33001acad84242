// Package endpoint is one rank's end of all its conversations: it connects to peers when they are first needed,
// frames messages, matches them with receives, keeps memory bounded, and turns the death of a peer into errors
// that name it.
//
// Traffic is divided into lanes, one per group; all lanes share one stream per peer. Within a lane, messages
// match receives by (source, tag) in the order in which they were sent (MPI's non-overtaking rule), or, for the
// steps of a collective, by (source, sequence number, step).
//
// Messages up to wire.EagerLimit bytes, and pieces of a collective's up to wire.LongestPiece, travel at once (eager), against a
// budget per peer that the receiver gives back as it consumes them. Larger ones, and all once the budget is spent, send
// only an envelope, and their bytes when the receiver has posted a buffer (rendezvous): a sender that floods fills
// nobody's memory, and a message that nobody awaits blocks nothing behind it.
//
// A lane fails once and for good: the first failure ends every operation under way, is told to all members that
// are connected or come to be, and answers every later call and message.
//
// One mutex guards all state, and the callers' buffers: it is held while bytes are moved to and from them, which never
// waits. A stream that can be had as a transport.Stream has no goroutine between it and who waits: a Send writes at once
// what there is room for, and a Wait polls, reading large messages straight into their buffers. One goroutine polls for
// all; when nothing comes for a moment it sleeps as well, and a single goroutine that has slept in an epoll all along goes
// on for all streams (poll.go, watch.go). It is woken once, not for every message, and not at all when the rank is idle.
// Through memory short messages of blocking calls go at once, from buffer to buffer, where nothing stands in the way (now.go).
// Any other net.Conn has a reader and a writer (goroutines.go). Either way the inbox takes the frames apart, and the outbox
// says what comes next.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/progress"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/comm/transport"
)

const (
	// flushTimeout is how long Close waits for peers that do not read.
	flushTimeout = 5 * time.Second
	// crossTimeout is how long a dial that lost against the peer's own waits for it before it tries again.
	crossTimeout = time.Second
)

// ErrClosed is the error of operations on a lane or endpoint that this rank has closed.
var ErrClosed = errors.New("the group is closed")

// A Fate is what is known of a peer whose stream has ended without goodbye.
type Fate int

// What may be known.
const (
	Unknown Fate = iota
	Dead         // its process has ended
	Alive        // its process still runs
)

// Options tune an Endpoint.
type Options struct {
	ConnectTimeout time.Duration // limit for reaching one peer; 0: none
	// News is how long news of a failure may be under way from one rank while another has gone because of it: so long a rank
	// that is gone, and has not died for certain, is not blamed.
	News time.Duration
	// Died says what has become of a rank whose stream ended without goodbye. It may wait a moment to find out.
	Died func(rank int) Fate // nil: Unknown
	// State says what a rank that does not answer is in, or nothing.
	State func(rank int) string  // nil: nothing
	Name  func(call.Call) string // what a call is called, for reports
	Log   *slog.Logger           // nil: silent
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
	lanes         map[uint64]*Lane
	early         map[uint64][]*matching.Message // for lanes that this rank has not opened yet
	earlyFailures map[uint64]earlyFailure        // failures of such lanes
	retired       []retired                      // closed lanes, oldest first
	stalls        []*stall                       // oldest first
	sends         map[uint64]*Op                 // rendezvous sends that wait for clear to send
	nextID        uint64
	closed        bool
	cause         diagnosis.Cause // of this rank's last failure
	causeSent     []chan struct{} // each is closed when a peer has been told of it, or never will be

	engine *progress.Engine
	piece  []byte // what is read from streams before it is known what it is
}

// New returns the endpoint of rank in a world of size and starts serving on tr, which it owns from now on.
func New(tr transport.Transport, rank, size int, opt Options) *Endpoint {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Name == nil {
		opt.Name = func(c call.Call) string { return fmt.Sprintf("call %d", c.Op) }
	}
	e := &Endpoint{
		rank: rank, tr: tr, opt: opt,
		peers:         make([]*peer, size),
		lanes:         map[uint64]*Lane{},
		early:         map[uint64][]*matching.Message{},
		earlyFailures: map[uint64]earlyFailure{},
		sends:         map[uint64]*Op{},
		piece:         make([]byte, readAhead),
	}
	e.engine = progress.New(&e.mu, size, opt.Options)
	e.ctx, e.stop = context.WithCancel(context.Background())
	for r := range e.peers {
		e.peers[r] = e.newPeer(r)
	}
	tr.Serve(e)
	return e
}

// Open returns the lane of the group id, whose members are world ranks and include this one.
func (e *Endpoint) Open(id uint64, members []int) (*Lane, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	if e.lanes[id] != nil {
		return nil, fmt.Errorf("group %#x is open already", id)
	}
	l := &Lane{ep: e, id: id, members: slices.Clone(members), told: map[int]chan struct{}{}}
	e.lanes[id] = l
	for _, m := range e.early[id] {
		if m.Kind == wire.Leave {
			e.peers[m.Source].earlyLeaves--
			l.leave(m.Source, m.Fingerprint)
			m.Free()
		} else {
			l.queues.Keep(m)
		}
	}
	delete(e.early, id)
	if f, failed := e.earlyFailures[id]; failed {
		e.peers[f.source].earlyFailures--
		delete(e.earlyFailures, id)
		l.fail(f.failure, -1)
	}
	for _, r := range members {
		if p := e.peers[r]; p.state == stateGone && !p.left && l.left[r] == nil {
			l.fail(p.failure, -1)
		}
	}
	return l, nil
}

// Go runs f on a goroutine that the endpoint's Close waits for. Once that has begun, f runs before Go returns.
func (l *Lane) Go(f func()) {
	e := l.ep
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		f()
		return
	}
	e.wg.Add(1)
	e.mu.Unlock()
	go func() {
		defer e.wg.Done()
		f()
	}()
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
	for _, l := range e.lanes {
		l.close()
	}
	var goodbyes, answers []chan struct{}
	for _, p := range e.peers {
		if p.state == stateUp {
			goodbyes = append(goodbyes, e.sayGoodbye(p))
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
	patience := time.NewTimer(limit)
	defer patience.Stop()
	for _, c := range all {
		select {
		case <-c:
		case <-patience.C:
			return
		}
	}
}
