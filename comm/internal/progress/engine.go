// Package progress moves the bytes of streams that never block: a progress engine, as in MPI and UCX. The goroutine that waits for a
// request polls the streams. Only one goroutine polls at a time; the others park, and wait in line. If nothing comes for a while, the
// polling goroutine parks too. Then the engine's own goroutine, which sleeps in an epoll, moves the bytes of all streams. It wakes up
// once, not for every message, and it does not wake up at all while the rank is idle.
//
// The package knows no messages: a Mover takes the bytes. The owner's mutex guards all state of the engine and of the movers. It is held
// while bytes move, which never blocks.
package progress

import (
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/internal/epoll"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/comm/internal/wait"
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

// A Conn is the stream to one rank.
type Conn struct {
	Stream    transport.Stream       // nil: there is none
	Memory    transport.MemoryStream // Stream, if it is one
	Ended     bool                   // there is no more to read
	coalescer transport.Coalescer    // Stream, if it is one
	mover     Mover
	rank      int
	armed     bool   // the engine's goroutine wakes up when the stream is ready
	short     int    // short messages since the last wait
	since     uint64 // the number of that wait
}

// Options say which other ranks need the processors.
type Options struct {
	// Oversubscribed is set if this machine has more ranks than processors: a rank that waits lets others run.
	Oversubscribed bool
	// SharesProcess is set if ranks of this process wait for each other, each in a goroutine.
	SharesProcess bool
}

// An Engine moves the bytes of all streams of a rank. Guarded by mu, except where said.
type Engine struct {
	mu  *sync.Mutex
	opt Options

	peers    []Conn     // by rank
	conns    []*Conn    // those that have a stream
	polling  bool       // a goroutine polls
	woken    bool       // a goroutine that does not poll can go on
	polls    uint64     // how often a goroutine has begun to poll
	waits    uint64     // how often a goroutine has begun to wait
	corked   []*Conn    // on which short messages are held back
	parked   int        // goroutines
	line     []*Waiter  // parked goroutines that would like to poll, in order
	spare    []*Waiter  // to use again
	ready    *epoll.Set // the streams; nil before Start
	isPaused bool       // the engine's goroutine pauses
	resume   chan struct{}
	few      epoll.Few // see sleep

	// Of the goroutine that polls:
	contention wait.Detector
	yieldTo    func() // lets another thread run

	async sync.WaitGroup // the engine's goroutine
}

// New returns an engine for streams to size ranks. mu guards its state, and that of the movers.
func New(mu *sync.Mutex, size int, opt Options) *Engine {
	return &Engine{
		mu: mu, opt: opt, peers: make([]Conn, size), resume: make(chan struct{}, 1),
		contention: wait.Detector{Shared: opt.Oversubscribed}, yieldTo: wait.YieldThread,
	}
}

// Conn returns the stream to rank, which may be none yet.
func (e *Engine) Conn(rank int) *Conn { return &e.peers[rank] }

// Add makes stream the stream to rank, whose bytes mover moves. Start has returned true. The mutex is held.
func (e *Engine) Add(rank int, stream transport.Stream, mover Mover) {
	c := e.Conn(rank)
	*c = Conn{Stream: stream, mover: mover, rank: rank}
	c.Memory, _ = stream.(transport.MemoryStream)
	c.coalescer, _ = stream.(transport.Coalescer)
	e.conns = append(e.conns, c)
}

// Remove stops polling c, and closes its stream. The mutex is held.
func (e *Engine) Remove(c *Conn) {
	e.conns = slices.DeleteFunc(e.conns, func(other *Conn) bool { return other == c })
	_ = c.Stream.Close()
	c.Stream, c.Memory, c.coalescer = nil, nil, nil
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
