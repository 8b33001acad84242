// Package admission protects a port from strangers: whatever they do, it bounds the number, time and memory of connections that
// have not proven themselves.
//
// A [Listener] accepts connections from another listener as fast as they come, so that none waits long in the kernel's queue. It
// has one queue for silent connections, and one for those that have sent something but have not proven themselves. Accept returns
// a connection once it has sent something, as the accept filters of other systems do. When a connection has proven itself, the
// server calls Admit, and the connection leaves its queue.
//
// Each queue has a limit. When it is full, the Listener drops a connection for each new one: the oldest from the source address
// with the most connections, if that address has more than its fair share, or else the oldest of all. So silent connections never
// keep out one that sends something, and one address never keeps out all others. A connection that has sent something is safe for
// a moment, so that it can finish. If the next connection to drop is still safe, and the queue is half full, the Listener accepts
// nobody until that moment is over. All connections have the same total time to prove themselves.
//
// On Linux, the kernel waits for TCP connections to send something: it holds back thousands of silent connections for a
// minute, at no cost to this process. A client that the kernel has dropped finds out when it sends something.
//
// The Listener leaves some descriptors to the rest of the process. The kernel assigns the lowest free number, so the number of a
// new connection shows how many are in use. Accept continues even when the process runs out of them.
//
// A client whose connection is dropped sees it close, and should dial again: see [Connect] and [HungUp].
package admission

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
)

const (
	// DefaultTime is how long a connection has to prove itself.
	DefaultTime = 10 * time.Second
	// turn is how long a connection that has spoken is not dropped for another.
	turn = 100 * time.Millisecond

	firstPause, longestPause = 5 * time.Millisecond, time.Second // between two tries to accept, when that fails
)

var (
	errSilent  = errors.New("too many connections that send nothing")
	errCrowded = errors.New("too many connections that have not proven themselves")
	errLate    = errors.New("it did not prove itself in time")
	errNoFiles = errors.New("too many open files (ulimit -n)")
)

// Config holds the limits of a Listener. The zero value is usable.
type Config struct {
	Limit int                           // of silent connections, and of those that have spoken; 0: as descriptors allow
	Time  time.Duration                 // to prove itself; 0: DefaultTime
	Allow func(net.Conn) error          // returns why a connection may not even try; nil: all may
	Log   func(msg string, args ...any) // says who is turned away: the first of each kind, then numbers; nil: nothing is logged
}

// A Listener is a net.Listener whose Accept returns a [*Conn].
type Listener struct {
	net.Listener
	config  Config
	ceiling atomic.Int64 // descriptors from this number on are for the rest of the process
	ready   chan *Conn
	done    chan struct{} // closed by Close
	running sync.WaitGroup
	tally   tally

	mu     sync.Mutex
	closed bool
	silent queue
	spoken queue
	fewer  chan struct{} // has an entry when spoken has become shorter
}

// Listen returns a Listener for the connections of l. Its Close closes l.
func Listen(l net.Listener, config Config) *Listener {
	limit, ceiling := bounds(mostDescriptors())
	if config.Limit > 0 {
		limit = config.Limit
	}
	if config.Time == 0 {
		config.Time = DefaultTime
	}
	if config.Log == nil {
		config.Log = func(string, ...any) {}
	}
	a := &Listener{
		Listener: l, config: config, tally: tally{log: config.Log},
		ready: make(chan *Conn), done: make(chan struct{}), fewer: make(chan struct{}, 1),
		silent: newQueue(limit), spoken: newQueue(limit),
	}
	a.ceiling.Store(int64(ceiling))
	proc.OwnConn(l)
	deferAccept(l)
	a.running.Go(a.run)
	return a
}

// bounds returns the limit of each queue, and the first descriptor that connections may not use, for a process with this number
// of descriptors. It allows for a handful of ports.
func bounds(descriptors int) (limit, ceiling int) {
	return min(max(descriptors/16, 8), 512), descriptors - min(max(descriptors/4, 32), 512)
}

// Serve calls handle for every connection that has sent something, in a goroutine of group, until Close.
func (l *Listener) Serve(group *sync.WaitGroup, handle func(*Conn)) {
	for {
		select {
		case c := <-l.ready:
			group.Go(func() { handle(c) })
		case <-l.done:
			return
		}
	}
}

// Accept returns the next connection that has sent something. The only error is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close ends Accept, and drops every connection that has not proven itself.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.closed = true
	close(l.done)
	all := append(l.silent.all(), l.spoken.all()...)
	l.mu.Unlock()
	err := l.Listener.Close()
	for _, c := range all {
		l.drop(c, net.ErrClosed)
	}
	l.running.Wait()
	l.tally.close()
	return err
}

// run accepts connections until the listener is closed.
func (l *Listener) run() {
	pause := firstPause
	for l.awaitQueue() {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = firstPause
			proc.OwnConn(conn)
			l.enter(conn)
		case errors.Is(err, net.ErrClosed):
			return
		case isOutOfFiles(err) && l.dropSilent():
		default:
			l.tally.add(nil, err)
			select {
			case <-time.After(pause):
			case <-l.done:
				return
			}
			pause = min(2*pause, longestPause)
		}
	}
}

func isOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// awaitQueue waits until there is room for one more connection, or one may be dropped for it. It returns false when the listener
// is closed.
func (l *Listener) awaitQueue() bool {
	for {
		l.mu.Lock()
		wait := time.Duration(0)
		if next := l.spoken.next(); l.spoken.n >= l.spoken.limit/2 && next != nil {
			wait = turn - time.Since(next.spoke)
		}
		closed := l.closed
		l.mu.Unlock()
		if closed || wait <= 0 {
			return !closed
		}
		select {
		case <-time.After(wait):
		case <-l.fewer:
		case <-l.done:
		}
	}
}
