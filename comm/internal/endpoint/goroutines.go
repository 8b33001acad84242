package endpoint

import (
	"cmp"
	"errors"
	"io"
	"net"
	"time"
)

// A net.Conn has a reader and a writer, each with a piece of memory of its own between the stream and everybody's buffers:
// those are touched only under the mutex.

// goroutinePiece is how much is read or written at once.
const goroutinePiece = 64 << 10

// readFrom is p's reader: it takes bytes off conn until it breaks.
func (e *Endpoint) readFrom(p *peer, conn net.Conn) {
	defer e.wg.Done()
	piece := make([]byte, goroutinePiece)
	for {
		n, err := conn.Read(piece)
		e.mu.Lock()
		if p.state == stateUp && n > 0 {
			if wrong := e.feed(p, piece[:n]); err == nil && wrong != nil {
				err = protocolError{wrong}
			}
			if err == nil && p.left {
				err = io.EOF // so that the stream ends, for which the peer waits
			}
		}
		e.mu.Unlock()
		if err != nil {
			e.broke(p, unexpected(err))
			return
		}
	}
}

// writeTo is p's writer. It alone writes, so that nobody else can be held up by a peer that does not read.
func (e *Endpoint) writeTo(p *peer, conn net.Conn) {
	defer e.wg.Done()
	piece := make([]byte, 0, goroutinePiece)
	for {
		select {
		case <-p.wake:
		case <-p.gone:
			return
		}
		e.mu.Lock()
		for p.state == stateUp && !p.broken && p.out.Len() > 0 {
			v, frames := p.out.Next(cap(piece))
			piece = piece[:0]
			for _, b := range v {
				piece = append(piece, b...)
			}
			setFlying(p.out.Lend(frames), true)
			e.mu.Unlock()
			_, err := conn.Write(piece)
			e.mu.Lock()
			e.landed(p, len(piece), err)
		}
		e.mu.Unlock()
	}
}

// setFlying says whether the writer has bytes of the frames.
func setFlying(frames []frame, flying bool) {
	for _, f := range frames {
		if f.Op != nil {
			f.Op.flying = flying
		}
	}
}

// landed says that p's writer has written n bytes, or failed to. An operation that they complete has succeeded even if its
// lane has failed or the peer has gone in the meantime: a peer may well go once it has what it came for. The mutex is held.
func (e *Endpoint) landed(p *peer, n int, err error) {
	lent := p.out.TakeBack()
	setFlying(lent, false)
	if err == nil {
		p.wrote(n) // clears what is whole
	} else if p.state == stateUp {
		e.cannotWrite(p, err)
	}
	var over []*Op
	for _, f := range lent {
		if f.Op != nil && (p.state == stateGone || f.Op.err != nil) {
			over = append(over, f.Op)
		}
	}
	for _, op := range over {
		if op.Ended() { // as the one before failed the lane of both
			continue
		}
		p.out.Release(op)
		if p.state == stateGone {
			op.finish(cmp.Or(op.err, error(p.failure)))
			op.lane.failBy(p.failure)
		} else { // given up while it was with the writer
			op.finish(op.err)
		}
	}
	if p.state == stateGone {
		for _, f := range p.out.Drop() {
			f.Settle()
		}
	}
}

// cannotWrite says that a write to p has failed. The peer's last words may still wait to be read, a goodbye perhaps: the
// reader decides, if it does so soon, and drop ends what stays in the queue. The mutex is held.
func (e *Endpoint) cannotWrite(p *peer, err error) {
	p.broken, p.fault = true, err
	time.AfterFunc(time.Second, func() { e.broke(p, err) })
}

// broke finds out what became of p, whose stream ended with err, before anybody is told. Otherwise a rank that fails
// because of p could be gone before p itself, and look like the cause.
func (e *Endpoint) broke(p *peer, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.state == stateGone {
		return
	}
	var wrong protocolError
	if !p.left && !e.closed && !errors.As(err, &wrong) {
		e.mu.Unlock()
		fate := e.fateOf(p.rank)
		e.mu.Lock()
		p.fate = fate
	}
	e.lost(p, err)
}

// fateOf finds out what became of rank, which had not left when its stream ended.
func (e *Endpoint) fateOf(rank int) Fate {
	fate := Unknown
	if e.opt.Died != nil {
		fate = e.opt.Died(rank)
	}
	if fate != Dead {
		e.awaitNews()
	}
	return fate
}

// awaitNews gives others a moment to tell of what this rank has not heard yet: the failure because of which a peer may have
// gone, or how it ended.
func (e *Endpoint) awaitNews() {
	if e.opt.News <= 0 {
		return
	}
	news := time.NewTimer(e.opt.News)
	defer news.Stop()
	select {
	case <-news.C:
	case <-e.ctx.Done():
	}
}
