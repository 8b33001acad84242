package endpoint

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// cannotWrite records that a write to p has failed. There may still be something to read from p, such as a goodbye. So for a moment it is
// up to the reader to find out why the stream has ended.
func (e *state) cannotWrite(p *peer, err error) {
	p.fault = err
	time.AfterFunc(time.Second, func() { e.api().broke(p, err) })
}

// broke finds out what has become of p, whose stream has ended with err, before this rank reports it. Otherwise a rank that fails because
// of p could be gone before p itself, and look like the cause.
func (e *Endpoint) broke(p *peer, err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	liveness := diagnosis.Unknown
	if _, isProtocol := errors.AsType[diagnosis.ProtocolError](err); !isProtocol && !e.isLeaving(p) {
		liveness = e.findLiveness(p)
	}
	p.writing.Lock() // until the writer has counted what it has written: p may have gone because it has all that it needs
	defer p.writing.Unlock()
	in := e.lock()
	defer in.unlock()
	in.lost(p, err, liveness)
}

// isLeaving reports whether the stream to p ends, or has ended, in good order.
func (e *Endpoint) isLeaving(p *peer) bool {
	in := e.lock()
	defer in.unlock()
	return p.state == stateGone || p.saidGoodbye || e.closed
}

// findLiveness finds out whether p lives: the stream to p has ended without goodbye, or p cannot be reached. Then it waits for news of why p
// has gone, unless p is dead and had the time to say why.
func (e *Endpoint) findLiveness(p *peer) diagnosis.Liveness {
	in := e.lock()
	hadTime := p.state == stateUp && time.Since(p.upSince) > e.opt.News
	in.unlock()
	if e.opt.Revocable {
		select {
		case <-e.revoking: // all communicators have failed, and survivors end their streams without goodbye, too
			return diagnosis.Unknown
		case <-e.final:
		case <-time.After(RevokeTimeout):
		case <-e.ctx.Done():
		}
	}
	liveness := diagnosis.Unknown
	if e.opt.Liveness != nil {
		liveness = e.opt.Liveness(p.rank)
	}
	if liveness != diagnosis.Dead || !hadTime {
		e.awaitNews()
	}
	return liveness
}

// Liveness finds out whether rank lives, whose memory cannot be reached. It takes a moment, in which the communicator may fail because of
// what it finds out.
func (c *Communicator) Liveness(rank int) diagnosis.Liveness {
	return c.ep.api().findLiveness(c.ep.peers[rank])
}

// awaitNews waits for the news of an earlier failure, because of which a peer may have gone.
func (e *Endpoint) awaitNews() {
	if e.opt.News <= 0 {
		return
	}
	select {
	case <-time.After(e.opt.News):
	case <-e.ctx.Done():
	}
}

// lost records that the stream to p has broken.
func (e *state) lost(p *peer, err error, liveness diagnosis.Liveness) {
	if p.state == stateGone {
		return
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && p.fault != nil && !errors.Is(p.fault, syscall.EPIPE) {
		err = p.fault // the system reports it once, here to the writer; after that, a reader finds only the end of the stream
	}
	e.opt.Log.Debug("stream ended", "rank", p.rank, "goodbye", p.saidGoodbye, "error", err)
	lost := diagnosis.Lost{
		Rank: p.rank, HasLeft: p.saidGoodbye, WasUp: p.state == stateUp, Liveness: liveness, Suspicion: p.suspicion,
		LastWait: e.lastWait(p), Cause: p.cause,
	}
	e.drop(p, lost.Failure(e.rank, err, time.Now()))
}

// drop closes the stream to p and ends the operations that need p with f. If p has died, that fails their communicators;
// a communicator in which nobody needs p goes on until somebody does: a program may end without goodbye when it is done.
func (e *state) drop(p *peer, f *diagnosis.Failure) {
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
	e.resolved(p)
	for _, c := range e.comms {
		if slices.Contains(c.members, p.rank) && c.closedBy[p.rank] == nil {
			c.lose(p.rank, f)
		}
	}
	for _, q := range p.out.Drop() {
		q.CloseSent()
		if q.Op != nil { // its communicator has been closed
			q.Op.comm.abandon(q.Op, f)
		}
	}
}
