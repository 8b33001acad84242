package endpoint

import (
	"io"
	"net"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/comm/internal/wire"
)

const (
	// readAhead is how much is read before it is known what it is.
	readAhead = 32 << 10
	// directLimit is from how many bytes on a payload is read straight to where it goes.
	directLimit = 8 << 10
	// moveLimit is how many bytes are written or read at once, so that both get their turns.
	moveLimit = 1 << 20
)

// poll makes conn a stream to p that is polled, and reports whether that is possible.
func (e *state) poll(p *peer, conn net.Conn) bool {
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

// write writes frames to p as far as there is room, or wakes p's writer.
func (e *state) write(p *peer) {
	if p.link.Stream == nil {
		select {
		case p.wake <- struct{}{}:
		default:
		}
		return
	}
	e.push(p)
	if p.HasOutput() {
		e.engine.AddOutput(p.link)
	}
}

// push writes some bytes to p, and reports whether there was room for any.
func (e *state) push(p *peer) bool {
	if !p.HasOutput() {
		return false
	}
	n, err := p.link.Stream.TryWrite(p.out.Next(moveLimit + wire.HeaderSize))
	e.allow(p, n)
	e.wrote(p, n)
	if err != nil {
		e.cannotWrite(p, err)
	}
	return n > 0
}

// pull reads some bytes from p, and reports whether there were any.
func (e *state) pull(p *peer) bool {
	if p.link.Ended {
		return false
	}
	b, inMemory := e.readBuffer, p.link.Memory != nil // to read from memory in parts costs no system calls
	straight := p.in.into != nil && p.in.rest > 0 && (inMemory || p.in.rest >= directLimit)
	switch {
	case straight:
		b = p.in.into[:min(p.in.rest, moveLimit)]
	case p.in.rest == 0 && (inMemory || p.in.long): // after a long message another long one is likely
		b = b[:wire.HeaderSize-p.in.have]
	case inMemory:
		b = b[:min(p.in.rest, len(b))]
	}
	n, err := p.link.Stream.TryRead(b)
	if straight {
		err = p.ending(err, e.filled(p, n))
	} else {
		err = p.ending(err, e.feed(p, b[:n]))
	}
	if err != nil {
		p.Fail(err)
	}
	return n > 0
}

// ending returns why the stream from p ends, or nil: err, an error of the stream; wrong, an error in what p has sent; or io.EOF after
// p's goodbye, because p waits for the end of the stream.
func (p *peer) ending(err, wrong error) error {
	switch {
	case err == nil && wrong != nil:
		return diagnosis.ProtocolError{Err: wrong}
	case err == nil && p.saidGoodbye:
		return io.EOF
	}
	return err
}

// Move implements progress.Mover.
func (p *peer) Move() bool {
	pushed := p.ep.push(p)
	return p.ep.pull(p) || pushed
}

// HasOutput implements progress.Mover.
func (p *peer) HasOutput() bool { return p.out.Len() > 0 && p.fault == nil }

// Fail implements progress.Mover.
func (p *peer) Fail(err error) {
	p.link.Ended = true
	p.ep.wg.Go(func() { p.ep.api().broke(p, err) })
}

type frame = wire.Frame[*operation]

// enqueue queues f for p, and writes it at once if that is possible.
func (e *state) enqueue(p *peer, f frame) {
	if p.state == stateGone || p.outputClosed {
		f.CloseSent()
		return
	}
	e.engine.CountWrite(p.link, wire.HeaderSize+len(f.Payload), f.Kind == wire.Eager)
	p.out.Add(f)
	if p.out.Len() == 1 {
		e.write(p)
	}
}

// allow counts what p may send once it has got the next n bytes. It is called before anything can come that p sends then: before the mutex is
// let go.
func (e *state) allow(p *peer, n int) {
	frames := p.out.Completes(n)
	for i := range frames {
		p.received.Sent(&frames[i].Header)
	}
}

// wrote counts n bytes that have been written, and ends the operations that they complete.
func (e *state) wrote(p *peer, n int) {
	if n > 0 && p.out.IsData() {
		e.moved++
	}
	p.out.Wrote(n, func(f *frame) {
		f.CloseSent()
		if f.Op != nil {
			f.Op.finish(nil)
		}
	})
}

// connBuffer is how much the reader or the writer of a net.Conn moves at once, through memory of its own: others' buffers are
// touched only under the mutex.
const connBuffer = 64 << 10

// readFrom is p's reader.
func (e *Endpoint) readFrom(p *peer, conn net.Conn) {
	buf := make([]byte, connBuffer)
	for {
		n, err := conn.Read(buf)
		in := e.lock()
		if p.state == stateUp && n > 0 {
			err = p.ending(err, in.feed(p, buf[:n]))
		}
		in.unlock()
		if err != nil {
			_ = conn.Close() // so that the writer returns
			e.broke(p, err)
			return
		}
	}
}

// writeTo is p's writer. It alone writes, so that a peer that does not read holds up no other goroutine.
func (e *Endpoint) writeTo(p *peer, conn net.Conn) {
	buf := make([]byte, 0, connBuffer)
	for {
		select {
		case <-p.wake:
		case <-p.gone:
			return
		}
		p.writing.Lock()
		in := e.lock()
		for p.state == stateUp && p.HasOutput() {
			buf = buf[:0]
			for _, b := range p.out.Next(cap(buf)) {
				buf = append(buf, b...)
			}
			in.allow(p, len(buf))
			in.unlock()
			n, err := conn.Write(buf)
			in = e.lock()
			if p.state == stateUp && err == nil {
				in.wrote(p, n)
			} else if p.state == stateUp {
				in.wrote(p, 0)
				in.cannotWrite(p, err)
			}
		}
		in.unlock()
		p.writing.Unlock()
	}
}
