package endpoint

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// cannotWrite says that a write to p has failed. The peer's last words may still wait to be read, a goodbye perhaps: the
// reader decides, if it does so soon, and drop ends what stays in the queue. The mutex is held.
func (e *Endpoint) cannotWrite(p *peer, err error) {
	p.broken, p.fault = true, err
	time.AfterFunc(time.Second, func() { e.broke(p, err) })
}

// broke finds out what became of p, whose stream ended with err, before anybody is told. Otherwise a rank that fails
// because of p could be gone before p itself, and look like the cause.
func (e *Endpoint) broke(p *peer, err error) {
	p.writing.Lock() // a peer may well go once it has what it came for: what has been written counts first
	defer p.writing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.state == stateGone {
		return
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	liveness := diagnosis.Unknown
	if _, isProtocol := errors.AsType[diagnosis.ProtocolError](err); !p.left && !e.closed && !isProtocol {
		e.mu.Unlock()
		liveness = e.livenessOf(p.rank)
		e.mu.Lock()
	}
	e.lost(p, err, liveness)
}

// livenessOf finds out what became of rank, which had not left when its stream ended.
func (e *Endpoint) livenessOf(rank int) diagnosis.Liveness {
	liveness := diagnosis.Unknown
	if e.opt.Liveness != nil {
		liveness = e.opt.Liveness(rank)
	}
	if liveness != diagnosis.Dead {
		e.awaitNews()
	}
	return liveness
}

// awaitNews gives others a moment to tell of what this rank has not heard yet: the failure because of which a peer may have
// gone, or how it ended.
func (e *Endpoint) awaitNews() {
	if e.opt.News <= 0 {
		return
	}
	select {
	case <-time.After(e.opt.News):
	case <-e.ctx.Done():
	}
}

// lost records that the stream to p has broken. The mutex is held.
func (e *Endpoint) lost(p *peer, err error, liveness diagnosis.Liveness) {
	if p.state == stateGone {
		return
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && p.broken && !errors.Is(p.fault, syscall.EPIPE) {
		err = p.fault // which the system tells once: for whoever reads after that, the stream just ends
	}
	e.opt.Log.Debug("stream ended", "rank", p.rank, "goodbye", p.left, "error", err)
	lost := diagnosis.Lost{
		Rank: p.rank, HasLeft: p.left, WasUp: p.state == stateUp, Liveness: liveness, Suspicion: p.suspicion,
		LastWait: e.lastWait(p), Cause: p.cause,
	}
	e.drop(p, lost.Failure(e.rank, err, time.Now()))
}

// drop closes the stream to p and ends the operations that need p with f. If p has died, that fails their communicators;
// a communicator in which nobody needs p goes on until somebody does: a program may end without goodbye when it is done.
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
		close(p.resolved)
	}
	p.state, p.failure = stateGone, f
	close(p.gone)
	for _, c := range e.comms {
		if slices.Contains(c.members, p.rank) && c.left[p.rank] == nil {
			c.lose(p.rank, f)
		}
	}
	for _, q := range p.out.Drop() {
		q.CloseSent()
		if q.Op != nil { // its communicator has been closed
			q.Op.comm.end(q.Op, f)
		}
	}
}
