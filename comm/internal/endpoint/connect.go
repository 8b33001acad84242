package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	if p.rank == e.rank || p.state != stateIdle || p.dialing || p.admitted || e.closed {
		return
	}
	p.dialing = true
	e.wg.Go(func() { e.dial(p) })
}

func (e *Endpoint) dial(p *peer) {
	ctx := e.ctx
	if e.opt.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.opt.ConnectTimeout)
		defer cancel()
	}
	for {
		conn, err := e.tr.Dial(ctx, p.rank)
		isCrossed := errors.Is(err, transport.ErrCrossed)
		if isCrossed {
			select {
			case <-p.resolved:
			case <-time.After(crossTimeout):
			case <-ctx.Done():
			}
		}
		liveness := diagnosis.Unknown
		if err != nil && !isCrossed && ctx.Err() == nil {
			liveness = e.livenessOf(p)
		}
		e.mu.Lock()
		if isCrossed && p.state == stateIdle && ctx.Err() == nil {
			e.mu.Unlock()
			continue
		}
		p.dialing = false
		switch {
		case err == nil:
			e.up(p, conn)
		case p.state != stateIdle || p.admitted: // the peer's own dial has come through meanwhile, or will
		case !isCrossed || ctx.Err() != nil:
			e.lost(p, fmt.Errorf("cannot be reached: %w", err), liveness)
		}
		e.mu.Unlock()
		return
	}
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
	e.sendCause(p)
	e.sendLeaves(p)
	switch {
	case e.revoked != nil:
		e.sendRoundEnd(p)
	case e.closed:
		e.sendGoodbye(p)
	}
	if p.out.Len() > 0 {
		e.write(p)
	}
	if p.link.Stream != nil {
		e.engine.Arm(p.link)
	}
}
