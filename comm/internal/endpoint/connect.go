package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/transport"
)

// Admit implements transport.Handler.
func (e *Endpoint) Admit(rank int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[rank]
	if e.closed && !p.isAwaited() || p.state != stateIdle || (p.dialing && rank > e.rank) {
		return false
	}
	p.admitted = true
	return true
}

// Connected implements transport.Handler.
func (e *Endpoint) Connected(rank int, conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[rank]
	p.admitted = false
	if conn != nil {
		e.up(p, conn)
		return
	}
	e.resolved(p)
	if p.wanted {
		e.connect(p)
	}
}

// connect makes sure that p is connected, or being connected: an operation needs p. The mutex is held.
func (e *Endpoint) connect(p *peer) {
	p.wanted = true
	e.open(p)
}

// open opens a stream to p, unless there is one, or will be. The mutex is held.
func (e *Endpoint) open(p *peer) {
	if p.rank == e.rank || p.state != stateIdle || p.dialing || p.unreachable || p.admitted || e.closed {
		return
	}
	p.dialing = true
	e.wg.Go(func() { e.dial(p) })
}

// dial opens a stream to p. Afterwards p is up, or admitted because its own stream comes. If neither works, p is gone if an operation needs
// it; otherwise it stays idle.
func (e *Endpoint) dial(p *peer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		wanted, timeout := p.wanted, e.opt.ConnectTimeout
		if !wanted {
			timeout = reachTimeout
		}
		e.mu.Unlock()
		conn, err := e.dialFor(p, timeout)
		e.mu.Lock()
		switch {
		case err == nil:
			p.dialing = false
			e.up(p, conn)
			return
		case p.state != stateIdle || p.admitted:
			p.dialing = false
			return
		case p.wanted && !wanted && !e.closed: // an operation came to need it meanwhile
		default:
			p.dialing, p.unreachable = false, p.wanted
			e.resolved(p)
			if p.wanted {
				e.notReached(p, err)
			}
			return
		}
	}
}

// dialFor dials p, with a timeout (0: none). If p dials this rank at the same time, dialFor waits for p's stream, and dials again if none comes.
func (e *Endpoint) dialFor(p *peer, timeout time.Duration) (net.Conn, error) {
	ctx := e.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for {
		conn, err := e.tr.Dial(ctx, p.rank)
		if !errors.Is(err, transport.ErrCrossed) {
			return conn, err
		}
		select {
		case <-p.resolved:
			return nil, err
		case <-time.After(crossTimeout):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// notReached finds out what has become of p. An operation needs p, and a dial has ended with err. The mutex is held, but not while p's
// process is looked for.
func (e *Endpoint) notReached(p *peer, err error) {
	liveness := diagnosis.Unknown
	if saysNoReason(err) {
		e.mu.Unlock()
		liveness = e.findLiveness(p)
		e.mu.Lock()
	}
	p.unreachable = false
	if p.state == stateIdle && !p.admitted { // its own stream may have come
		e.lost(p, fmt.Errorf("cannot be reached: %w", err), liveness)
	}
}

// saysNoReason reports whether err, with which a dial has ended, does not say why. Then the peer may have left, or died because of an
// earlier failure, and others may know.
func saysNoReason(err error) bool {
	return slices.ContainsFunc([]error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF}, func(e error) bool {
		return errors.Is(err, e)
	})
}

// up starts using conn as the stream to p. The mutex is held.
func (e *Endpoint) up(p *peer, conn net.Conn) {
	if p.state != stateIdle || e.ctx.Err() != nil {
		_ = conn.Close()
		return
	}
	if !e.poll(p, conn) {
		p.conn = conn
		e.wg.Go(func() { e.readFrom(p, conn) })
		e.wg.Go(func() { e.writeTo(p, conn) })
	}
	e.established(p)
}

// established begins to use the stream to p. The mutex is held.
func (e *Endpoint) established(p *peer) {
	p.state, p.upSince = stateUp, time.Now()
	close(p.resolved)
	for _, c := range e.comms {
		if c.err != nil && slices.Contains(c.members, p.rank) {
			c.notify(p.rank) // it may have connected to wait for what will not come
		}
	}
	e.resolved(p)
	e.sendCause(p)
	e.sendLeaves(p)
	switch {
	case e.revoked != nil:
		p.outputClosed = true
	case e.closed: // Close may have said all its goodbyes already
		e.sendGoodbye(p)
	}
	if p.out.Len() > 0 {
		e.write(p)
	}
	if p.link.Stream != nil {
		e.engine.Arm(p.link)
	}
}
