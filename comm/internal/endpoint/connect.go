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
	in := e.lock()
	defer in.unlock()
	p := e.peers[rank]
	if e.closed && !in.isAwaited(p) || p.state != stateIdle || (p.dialing && rank > e.rank) {
		return false
	}
	p.admitted = true
	return true
}

// Connected implements transport.Handler.
func (e *Endpoint) Connected(rank int, conn net.Conn) {
	in := e.lock()
	defer in.unlock()
	p := e.peers[rank]
	p.admitted = false
	if conn != nil {
		in.up(p, conn)
		return
	}
	in.resolved(p)
	if p.wanted {
		in.connect(p)
	}
}

// connect makes sure that p is connected, or being connected: an operation needs p.
func (e *state) connect(p *peer) {
	p.wanted = true
	e.open(p)
}

// open opens a stream to p, unless there is one, or will be.
func (e *state) open(p *peer) {
	if p.rank == e.rank || p.state != stateIdle || p.dialing || p.unreachable || p.admitted || e.closed {
		return
	}
	p.dialing = true
	e.wg.Go(func() { e.api().dial(p) })
}

// dial opens a stream to p. Afterwards p is up, or admitted because its own stream comes. If neither works, p is gone if an operation needs
// it; otherwise it stays idle.
func (e *Endpoint) dial(p *peer) {
	in := e.lock()
	defer in.unlock()
	for {
		wanted, timeout := p.wanted, e.opt.ConnectTimeout
		if !wanted {
			timeout = reachTimeout
		}
		in.unlock()
		conn, err := e.dialFor(p, timeout)
		in = e.lock()
		switch {
		case err == nil:
			p.dialing = false
			in.up(p, conn)
			return
		case p.state != stateIdle || p.admitted:
			p.dialing = false
			return
		case p.wanted && !wanted && !e.closed: // an operation came to need it meanwhile
		default:
			p.dialing, p.unreachable = false, p.wanted
			in.resolved(p)
			if p.wanted {
				in.notReached(p, err)
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

// notReached finds out what has become of p. An operation needs p, and a dial has ended with err. The mutex is not held while
// p's process is looked for.
func (e *state) notReached(p *peer, err error) {
	liveness := diagnosis.Unknown
	if saysNoReason(err) {
		e.unlock()
		liveness = e.api().findLiveness(p)
		e.api().lock()
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

// up starts using conn as the stream to p.
func (e *state) up(p *peer, conn net.Conn) {
	if p.state != stateIdle || e.ctx.Err() != nil {
		_ = conn.Close()
		return
	}
	if !e.poll(p, conn) {
		p.conn = conn
		e.wg.Go(func() { e.api().readFrom(p, conn) })
		e.wg.Go(func() { e.api().writeTo(p, conn) })
	}
	e.established(p)
}

// established begins to use the stream to p.
func (e *state) established(p *peer) {
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
