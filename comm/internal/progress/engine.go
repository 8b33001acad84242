// Package progress moves the bytes of streams that never block, as UCX's workers and MPI's progress engines do: who waits for a request
// polls, one goroutine at a time; when nothing comes for a while it parks as well, and a goroutine of the engine's own, which has slept
// in an epoll all along, goes on for all streams. That is woken once, not for every message, and not at all when the rank is idle. The
// package knows no messages: a Mover takes them apart. All state belongs to the owner's mutex, which also guards what movers touch; who
// polls holds it while bytes are moved, which never waits.
package progress

import (
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/epoll"
	"github.com/gorun/gorun/comm/transport"
)

// A Mover moves the bytes of one stream. Its methods are called with the mutex held.
type Mover interface {
	// Move writes and reads some bytes, and reports whether there were any.
	Move() bool
	// HasOutput reports whether there is something to write.
	HasOutput() bool
	// Fail says that the stream cannot be polled any more because of err.
	Fail(err error)
}

// A Conn is a stream as the engine sees it: the part of its owner's peer that is about polling.
type Conn struct {
	Stream    transport.Stream    // nil: there is none
	Window    transport.Window    // Stream, if it is one
	Ended     bool                // there is no more to read
	coalescer transport.Coalescer // Stream, if it is one
	mover     Mover
	rank      int
	armed     bool   // the engine's goroutine is woken when the stream is ready
	short     int    // short messages since somebody has last waited
	since     uint64 // which wait that was
}

// Options say what others are on the machine.
type Options struct {
	// Oversubscribed says that there are more ranks on this machine than processors: who waits lets others run.
	Oversubscribed bool
	// SharesProcess says that there are ranks in this process that wait for each other, each in a goroutine.
	SharesProcess bool
}

// An Engine moves the bytes of all streams of a rank. Guarded by mu, except where said.
type Engine struct {
	mu  *sync.Mutex
	opt Options

	peers    []Conn     // by rank
	conns    []*Conn    // of them, those that are polled
	polling  bool       // somebody polls
	woken    bool       // somebody may go on who does not poll
	polls    uint64     // how often somebody has
	waits    uint64     // how often somebody has begun to
	corked   []*Conn    // on which short messages wait for more
	parked   int        // waiters
	line     []*Waiter  // of them, those that would like to poll
	spare    []*Waiter  // for use again
	ready    *epoll.Set // of streams; nil: there is none yet
	isPaused bool       // the engine's goroutine is
	resume   chan struct{}
	few      epoll.Few // see sleep

	async sync.WaitGroup // the engine's goroutine
}

// New returns an engine for streams to so many ranks. mu guards its state, and that of the movers.
func New(mu *sync.Mutex, size int, opt Options) *Engine {
	return &Engine{mu: mu, opt: opt, peers: make([]Conn, size), resume: make(chan struct{}, 1)}
}

// Conn is the place of the stream to rank.
func (e *Engine) Conn(rank int) *Conn { return &e.peers[rank] }

// Add starts polling stream, to rank, the bytes of which mover moves. The engine has been started. The mutex is held.
func (e *Engine) Add(rank int, stream transport.Stream, mover Mover) {
	c := e.Conn(rank)
	*c = Conn{Stream: stream, mover: mover, rank: rank}
	c.Window, _ = stream.(transport.Window)
	c.coalescer, _ = stream.(transport.Coalescer)
	e.conns = append(e.conns, c)
}

// Remove stops polling c, and closes its stream. The mutex is held.
func (e *Engine) Remove(c *Conn) {
	e.conns = slices.DeleteFunc(e.conns, func(other *Conn) bool { return other == c })
	_ = c.Stream.Close()
	c.Stream, c.Window, c.coalescer = nil, nil, nil
}

// Close ends the engine's goroutine. The mutex is not held.
func (e *Engine) Close() {
	e.mu.Lock()
	ready := e.ready
	e.mu.Unlock()
	if ready != nil {
		_ = ready.Close()
	}
	e.async.Wait()
}

// start is when the program began.
var start = time.Now()
