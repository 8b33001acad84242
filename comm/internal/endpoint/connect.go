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
		e.want(p)
	}
}

// want makes sure that p is connected, or being connected. The mutex is held.
func (e *Endpoint) want(p *peer) {
	p.wanted = true
	if p.rank == e.rank || p.state != stateIdle || p.dialing || p.admitted || e.closed {
		return
	}
	p.dialing = true
	e.wg.Add(1)
	go e.dial(p)
}

func (e *Endpoint) dial(p *peer) {
	defer e.wg.Done()
	ctx := e.ctx
	if e.opt.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.opt.ConnectTimeout)
		defer cancel()
	}
	for {
		conn, err := e.tr.Dial(ctx, p.rank)
		if errors.Is(err, transport.ErrCrossed) {
			again := time.NewTimer(crossTimeout)
			select {
			case <-p.settled:
			case <-again.C:
			case <-ctx.Done():
			}
			again.Stop()
			if !p.isSettled() && ctx.Err() == nil {
				continue
			}
		}
		fate := Unknown
		if errors.Is(err, syscall.ECONNREFUSED) {
			if fate = e.fateOf(p.rank); fate == Dead {
				e.awaitNews() // from who has been connected to it, and knows whether it had left
			}
		}
		e.mu.Lock()
		p.dialing = false
		switch {
		case err == nil:
			e.up(p, conn)
		case p.state != stateIdle || p.admitted: // the peer's own dial has come through meanwhile, or will
		case !errors.Is(err, transport.ErrCrossed) || ctx.Err() != nil:
			p.fate = fate
			e.lost(p, fmt.Errorf("cannot be reached: %w", err))
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
		e.wg.Add(2)
		go e.readFrom(p, conn)
		go e.writeTo(p, conn)
	}
	p.state = stateUp
	close(p.settled)
	for _, l := range e.lanes {
		if l.err != nil && slices.Contains(l.members, p.rank) {
			l.tell(p.rank) // it may have connected to wait for what will not come
		}
	}
	e.tellCause(p)
	e.takeLeaves(p)
	if p.out.Len() > 0 {
		e.write(p)
	}
	if p.link.Stream != nil {
		e.engine.Arm(p.link)
	}
}

// lost records that the stream to p has broken. The mutex is held.
func (e *Endpoint) lost(p *peer, err error) {
	if p.state == stateGone {
		return
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && p.broken && !errors.Is(p.fault, syscall.EPIPE) {
		err = p.fault // which the system tells once: for whoever reads after that, the stream just ends
	}
	e.opt.Log.Debug("stream ended", "rank", p.rank, "goodbye", p.left, "error", err)
	e.drop(p, e.verdict(p, err))
}

// verdict is what has become of p, whose stream broke with err.
func (e *Endpoint) verdict(p *peer, err error) *diagnosis.Failure {
	if p.left {
		return p.rootCause(&diagnosis.Failure{Kind: diagnosis.Left, Rank: p.rank, Text: "has left (closed its world)"})
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return &diagnosis.Failure{Kind: diagnosis.Aborted, Rank: e.rank, Text: fmt.Sprintf("it has no descriptor left to reach rank %d: %v", p.rank, err)}
	}
	text := describe(err)
	if p.state == stateIdle && !errors.Is(err, syscall.ECONNREFUSED) {
		text = err.Error() // it has never been connected
	}
	var wrong protocolError
	switch {
	case errors.As(err, &wrong):
	case p.fate == Dead && errors.Is(err, syscall.ECONNREFUSED): // there was no stream on which it could say goodbye
		text = "its process has ended: it left, or died"
	case p.fate == Dead:
		text = "died" + e.lastWait(p)
	case p.fate == Alive:
		text += ", though its process still runs"
	case p.suspect != "":
		text += ": " + p.suspect
	default:
		text += e.lastWait(p)
	}
	f := &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: p.rank, Text: text, Err: err}
	if wrong.error == nil {
		f = p.rootCause(f)
	}
	return f
}

// drop closes the stream to p and ends the operations that need p with f. If p has died, that fails their lanes;
// a lane in which nobody needs p goes on until somebody does: a program may end without goodbye when it is done.
// The mutex is held.
func (e *Endpoint) drop(p *peer, f *diagnosis.Failure) {
	if p.state == stateGone {
		return
	}
	switch {
	case p.link.Stream != nil:
		e.engine.Remove(p.link)
	case p.conn != nil:
		_ = p.conn.Close()
	}
	if p.state == stateIdle {
		close(p.settled)
	}
	p.state, p.failure = stateGone, f
	close(p.gone)
	for _, l := range e.lanes {
		if slices.Contains(l.members, p.rank) && l.left[p.rank] == nil {
			l.without(p.rank, f)
		}
	}
	for _, q := range p.out.Drop() {
		q.Settle()
		if q.Op != nil { // its lane has been closed
			q.Op.lane.end(q.Op, f)
		}
	}
}
