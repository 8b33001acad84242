// Package admission keeps strangers from using up a port: connections that have not proven themselves are bounded in number, in
// time and in memory, whatever they do.
//
// A [Listener] takes connections from another one as fast as they come, so that none waits long in the kernel's queue. Those
// that say nothing stay with it: like the accept filters of other systems, Accept returns only who has said something. Those
// that have stay in its books until Admit, which their server calls when they have proven themselves. Each of both groups has a
// limit. When one is full, a connection is dropped for the newcomer: the oldest of the source address that has most, if that is
// more than a fair share, else the oldest of all. So who says nothing never keeps out who does, and one address never
// all others. Who has spoken is given time to finish before it is dropped, and as long nobody is accepted. All have the same
// total time.
//
// On Linux the kernel does that for TCP: it keeps the first thousands of silent connections to itself for a minute, and they cost
// this process nothing. One that has been dropped there is told so when it speaks.
//
// Descriptors are kept back for what else the process does: the kernel gives out the lowest number that is free, so the number of
// a new connection says how many there are. Running out of them does not end Accept.
//
// A client that is dropped sees its connection end, and is to dial again: see [Connect] and [HungUp].
package admission

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// DefaultTime is how long a connection has to prove itself.
	DefaultTime = 10 * time.Second
	// turn is how long one that has spoken is not dropped for another.
	turn = 100 * time.Millisecond

	firstPause, longestPause = 5 * time.Millisecond, time.Second // when there are no descriptors
)

var (
	errSilent  = errors.New("too many connections say nothing")
	errCrowded = errors.New("too many connections do not prove themselves")
	errLate    = errors.New("it has not proven itself in time")
	errNoFiles = errors.New("too many open files (ulimit -n)")
)

// Config says whom a Listener lets in. The zero value is good.
type Config struct {
	Limit int                           // connections that may be silent, and as many that have spoken; 0: as descriptors allow
	Time  time.Duration                 // to prove itself; 0: DefaultTime
	Allow func(net.Conn) error          // says whether a connection may try at all; nil: all may
	Log   func(msg string, args ...any) // is told who is turned away: the first of each kind, then numbers; nil: nobody is
}

// A Listener is a net.Listener whose connections are a [*Conn] each.
type Listener struct {
	net.Listener
	config  Config
	ceiling atomic.Int64 // descriptors from this number on are kept back
	ready   chan *Conn
	done    chan struct{} // closed by Close
	running sync.WaitGroup
	tally   tally

	mu     sync.Mutex
	closed bool
	silent queue
	spoken queue
	fewer  chan struct{} // has an entry when there are fewer who have spoken
}

// Listen takes the connections of l, which the Listener closes in the end.
func Listen(l net.Listener, config Config) *Listener {
	limit, ceiling := bounds(descriptors())
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
	holdSilent(l)
	a.running.Go(a.run)
	return a
}

// bounds are how many connections of a kind may be unproven, and which descriptors connections leave alone, if a process may
// have so many. It has a handful of ports.
func bounds(descriptors int) (limit, ceiling int) {
	return min(max(descriptors/16, 8), 512), descriptors - min(max(descriptors/4, 32), 512)
}

// Accept returns the next connection that has said something. The only error is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptConn()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptConn is Accept.
func (l *Listener) AcceptConn() (*Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close ends Accept, and drops whoever has not proven itself.
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

// run takes connections until the listener is closed.
func (l *Listener) run() {
	pause := firstPause
	for l.awaitRoom() {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = firstPause
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

// awaitRoom returns when there is room for one more, or one may be dropped for it; false when the listener is closed.
func (l *Listener) awaitRoom() bool {
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
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.fewer:
		case <-l.done:
		}
		timer.Stop()
	}
}

// enter begins to wait for what a new connection has to say.
func (l *Listener) enter(conn net.Conn) {
	if l.config.Allow != nil {
		if err := l.config.Allow(conn); err != nil {
			l.tally.add(conn.RemoteAddr(), err)
			abort(conn)
			return
		}
	}
	if number(conn) >= int(l.ceiling.Load()) && !l.dropSilent() {
		l.tally.add(conn.RemoteAddr(), errNoFiles)
		abort(conn)
		return
	}
	c := &Conn{Conn: conn, listener: l, source: sourceOf(conn.RemoteAddr())}
	speaks, gone := c.listen(false)
	switch {
	case gone:
		abort(conn)
	case speaks:
		l.offer(c)
	case l.register(c, &l.silent, errSilent):
		l.running.Go(func() {
			if speaks, _ := c.listen(true); speaks {
				l.offer(c)
			} else {
				_ = c.Close()
			}
		})
	}
}

// offer lets Accept return a connection that has spoken.
func (l *Listener) offer(c *Conn) {
	if !l.register(c, &l.spoken, errCrowded) {
		return
	}
	select {
	case l.ready <- c:
	case <-l.done:
		_ = c.Close()
	}
}

// register puts c, which may be new, into a queue, from which another may have to be dropped for it. After false, c has been
// dropped itself.
func (l *Listener) register(c *Conn, q *queue, full error) bool {
	l.mu.Lock()
	switch {
	case l.closed && c.late == nil:
		l.mu.Unlock()
		abort(c.Conn)
		return false
	case c.late == nil:
		c.late = time.AfterFunc(l.config.Time, func() { l.drop(c, errLate) })
	case c.in == nil:
		l.mu.Unlock()
		return false
	default:
		c.in.remove(c)
	}
	if q == &l.spoken {
		c.spoke = time.Now()
	}
	victim := q.push(c)
	if victim != nil {
		l.leave(victim, full) // at once, so that nobody else drops the same one and the queue grows
	}
	l.mu.Unlock()
	if victim != nil {
		l.turnAway(victim, full)
	}
	return true
}

// leave takes c out of the books. It returns whether c was there. The mutex is held.
func (l *Listener) leave(c *Conn, reason error) bool {
	if c.in == nil {
		return false
	}
	if c.in == &l.spoken {
		select {
		case l.fewer <- struct{}{}:
		default:
		}
	}
	c.in.remove(c)
	c.late.Stop()
	c.reason = reason
	return true
}

// drop ends a connection that has not proven itself.
func (l *Listener) drop(c *Conn, reason error) {
	l.mu.Lock()
	there := l.leave(c, reason)
	l.mu.Unlock()
	if there {
		l.turnAway(c, reason)
	}
}

// turnAway ends a connection that is no longer counted.
func (l *Listener) turnAway(c *Conn, reason error) {
	if !errors.Is(reason, net.ErrClosed) {
		l.tally.add(c.RemoteAddr(), reason)
	}
	abort(c.Conn)
}

// dropSilent makes a descriptor free, if that can be done.
func (l *Listener) dropSilent() bool {
	l.mu.Lock()
	c := l.silent.next()
	l.mu.Unlock()
	if c == nil {
		return false
	}
	l.drop(c, errNoFiles)
	return true
}

// abort closes conn at once: its other end is told, and the kernel keeps nothing of it.
func abort(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}
