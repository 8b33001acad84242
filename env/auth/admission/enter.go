package admission

import (
	"errors"
	"net"
	"time"
)

// This file is the part of a Listener about connections that have not proven themselves: they enter a queue, and leave it.

// enter puts a new connection into a queue, and waits until it sends something.
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

// offer passes a connection that has sent something to Accept.
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

// register puts c, which may be in the other queue, into q. It drops another connection if q is full. It returns false if c itself
// has been dropped.
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
		l.dequeue(victim, full) // before the mutex is free: nobody else may choose the same victim
	}
	l.mu.Unlock()
	if victim != nil {
		l.turnAway(victim, full)
	}
	return true
}

// dequeue removes c from its queue. It returns false if c was in none. The caller holds the mutex.
func (l *Listener) dequeue(c *Conn, reason error) bool {
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

// drop closes a connection, if it has not proven itself.
func (l *Listener) drop(c *Conn, reason error) {
	l.mu.Lock()
	there := l.dequeue(c, reason)
	l.mu.Unlock()
	if there {
		l.turnAway(c, reason)
	}
}

// turnAway closes a connection that has left its queue.
func (l *Listener) turnAway(c *Conn, reason error) {
	if !errors.Is(reason, net.ErrClosed) {
		l.tally.add(c.RemoteAddr(), reason)
	}
	abort(c.Conn)
}

// dropSilent frees a descriptor by dropping a silent connection. It returns false if there is none.
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

// abort resets conn, so that the other end finds out and the kernel keeps nothing.
func abort(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}
