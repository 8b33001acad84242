package endpoint

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

// Send starts sending buf to dst. It does not block. seq is 0 for point to point; tag is then the caller's, else 0.
func (c *Communicator) Send(dst int, tag int, seq uint64, call call.Call, buf []byte) *Op {
	return c.send(newOp(dst, tag, seq, call, buf, len(buf)))
}

// SendChunk is Send of a chunk of a collective's message, which has so many bytes on the whole. Chunks of at most
// wire.LongestChunk bytes mostly travel at once.
func (c *Communicator) SendChunk(dst int, seq uint64, call call.Call, buf []byte, whole int) *Op {
	return c.send(newOp(dst, 0, seq, call, buf, whole))
}

// IsEager reports whether a chunk of n bytes that is sent to dst now goes eagerly.
func (c *Communicator) IsEager(dst, n int) bool {
	in := c.lock()
	defer in.unlock()
	return in.ep.peers[dst].sent.Fits(&wire.Header{Size: uint64(n), Fingerprint: call.Fingerprint{Seq: 1}})
}

func (c *Communicator) send(op *operation) *Op {
	in := c.lock()
	defer in.unlock()
	in.send(op)
	return (*Op)(op)
}

func (c *communicator) send(op *operation) {
	e, dst, buf := c.ep, op.peer, op.buf
	op.send = true
	c.addOp(op)
	h := op.envelope(wire.Eager)
	p := e.peers[dst]
	gone := c.gone(dst)
	switch err := c.usable(); {
	case err != nil:
		op.finish(err)
		return
	case dst == e.rank:
		m := matching.NewMessage(h, dst)
		copy(m.Payload, buf)
		c.arrive(m)
		op.finish(nil)
		return
	case gone != nil:
		op.finish(gone)
		c.failBy(gone)
		return
	}
	e.connect(p)
	if p.sent.Fits(&h) {
		p.sent.Use(len(buf))
		e.enqueue(p, frame{Header: h, Payload: buf, Op: op})
	} else {
		e.announce(p, op)
	}
}

// envelope is the header of what op sends.
func (op *operation) envelope(k wire.Kind) wire.Header {
	return wire.Header{
		Kind: k, Tag: op.tag, Context: op.comm.id, Size: uint64(len(op.buf)), ID: op.id, Whole: uint64(op.whole),
		Fingerprint: call.Fingerprint{Seq: op.seq, Call: op.call, Before: op.comm.collectives.Last().Before},
	}
}

// announce sends p an RTS for op, at once or as soon as p has answered enough of those before.
func (e *state) announce(p *peer, op *operation) {
	e.nextID++
	op.id = e.nextID
	e.sends[op.id] = op
	if p.sent.Announce(op.id, op.seq) {
		e.enqueue(p, frame{Header: op.envelope(wire.RTS)})
	}
}

// answeredRTS counts an RTS that p has answered, and sends those that have waited for that.
func (e *state) answeredRTS(p *peer) error {
	return p.sent.Answered(func(id uint64) bool {
		op := e.sends[id]
		if op != nil {
			e.enqueue(p, frame{Header: op.envelope(wire.RTS)})
		}
		return op != nil
	})
}
