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
	"github.com/gorun/gorun/comm/transport"
)

// Admit implements transport.Handler.
func (e *Endpoint) Admit(rank int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[rank]
	if e.closed || p.state != stateIdle || (p.dialing && rank > e.rank) {
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
	} else if p.wanted {
		e.connect(p)
	}
}

// connect makes sure that p is connected, or being connected. The mutex is held.
func (e *Endpoint) connect(p *peer) {
	p.wanted = true
	if p.rank == e.rank || p.state != stateIdle || p.dialing || p.unreachable || p.admitted || e.closed {
		return
	}
	p.dialing = true
	e.wg.Go(func() { e.dial(p) })
}

// dial opens a stream to p. In the end p is up, or gone, or admitted: its own stream comes.
func (e *Endpoint) dial(p *peer) {
	ctx := e.ctx
	if e.opt.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.opt.ConnectTimeout)
		defer cancel()
	}
	conn, err := e.tr.Dial(ctx, p.rank)
	for errors.Is(err, transport.ErrCrossed) && ctx.Err() == nil {
		select {
		case <-p.resolved:
			e.mu.Lock()
			p.dialing = false
			e.mu.Unlock()
			return
		case <-time.After(crossTimeout):
			conn, err = e.tr.Dial(ctx, p.rank)
		case <-ctx.Done():
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p.dialing = false
	if err == nil {
		e.up(p, conn)
		return
	}
	p.unreachable = true
	e.resolved(p)
	liveness := diagnosis.Unknown
	if saysNoReason(err) {
		e.mu.Unlock()
		liveness = e.findLiveness(p)
		e.mu.Lock()
	}
	p.unreachable = false
	if p.state == stateIdle && !p.admitted {
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
	p.state = stateUp
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
	case e.revoked != nil: // this rank may go on in the next round
		e.sendRoundEnd(p)
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
