package endpoint

import (
	"io"
	"net"

	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/comm/transport"
)

const (
	// readAhead is how much is read before it is known what it is.
	readAhead = 32 << 10
	// directLimit is from how many bytes on a payload is read straight to where it goes.
	directLimit = 8 << 10
	// pieceLimit is how many bytes are written or read at once, so that both get their turns.
	pieceLimit = 1 << 20
)

// poll makes conn the stream to p that is polled, if that can be had. The mutex is held.
func (e *Endpoint) poll(p *peer, conn net.Conn) bool {
	c, ok := conn.(transport.Pollable)
	if !ok || !e.engine.Start() {
		return false
	}
	s, err := c.Stream()
	if err != nil {
		return false
	}
	e.engine.Add(p.rank, s, p)
	return true
}

// write lets what is queued for p be written: at once, as far as there is room, or by p's writer. The mutex is held.
func (e *Endpoint) write(p *peer) {
	if p.link.Stream == nil {
		p.poke()
		return
	}
	e.push(p)
	if p.HasOutput() {
		e.engine.AddOutput(p.link)
	}
}

// push writes a piece of what is queued for p, and says whether there was room for any. The mutex is held.
func (e *Endpoint) push(p *peer) bool {
	if p.out.Len() == 0 || p.broken {
		return false
	}
	v, _ := p.out.Next(pieceLimit + wire.HeaderSize)
	n, err := p.link.Stream.TryWrite(v)
	p.wrote(n)
	if err != nil {
		e.cannotWrite(p, err)
	}
	return n > 0
}

// pull reads a piece of what p has sent, and says whether there was any. The mutex is held.
func (e *Endpoint) pull(p *peer) bool {
	if p.link.Ended {
		return false
	}
	b, quick := e.piece, p.link.Window != nil
	straight := p.in.into != nil && p.in.rest > 0 && (quick || p.in.rest >= directLimit)
	switch {
	case straight:
		b = p.in.into[:min(p.in.rest, pieceLimit)]
	case p.in.rest == 0 && (quick || p.in.long): // what is long is likely to be followed by its like
		b = b[:wire.HeaderSize-p.in.have]
	case quick:
		b = b[:min(p.in.rest, len(b))]
	}
	n, err := p.link.Stream.TryRead(b)
	var wrong error
	if straight {
		wrong = e.took(p, n)
	} else {
		wrong = e.feed(p, b[:n])
	}
	if err == nil && wrong != nil {
		err = protocolError{wrong}
	}
	if err == nil && p.left {
		err = io.EOF // so that the stream ends, for which the peer waits
	}
	if err != nil {
		p.Fail(err)
	}
	return n > 0
}

// Move implements progress.Mover.
func (p *peer) Move() bool {
	pushed := p.ep.push(p)
	return p.ep.pull(p) || pushed
}

// HasOutput implements progress.Mover.
func (p *peer) HasOutput() bool { return p.out.Len() > 0 && !p.broken }

// Fail implements progress.Mover.
func (p *peer) Fail(err error) {
	p.link.Ended = true
	p.ep.wg.Go(func() { p.ep.broke(p, unexpected(err)) })
}
