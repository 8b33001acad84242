package endpoint

import (
	"fmt"
	"slices"

	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

// An inbox takes apart the frames of a peer as their bytes come. Guarded by the mutex.
type inbox struct {
	head [wire.HeaderSize]byte
	have int // bytes of head that have come

	// Of the frame whose payload is coming.
	h    wire.Header
	long bool              // it is one to be read straight to where it goes
	rest int               // bytes that have not come
	into []byte            // where they go; nil: they are thrown away
	op   *operation        // the receive whose buffer that is part of
	m    *matching.Message // or the message that keeps them
	doc  []byte            // or the document of an abort, answer or cause frame
}

// feed takes in b, the next bytes from p.
func (e *state) feed(p *peer, b []byte) error {
	in := &p.in
	for len(b) > 0 {
		if in.rest > 0 {
			n := min(len(b), in.rest)
			copy(in.into, b[:n])
			b = b[n:]
			if err := e.filled(p, n); err != nil {
				return err
			}
			continue
		}
		n := copy(in.head[in.have:], b)
		b = b[n:]
		if in.have += n; in.have < wire.HeaderSize {
			return nil
		}
		in.have = 0
		if err := e.begin(p); err != nil {
			return err
		}
	}
	return nil
}

// begin acts on a header that has arrived. It decides where the payload goes: to the buffer of a posted receive, to memory of its own, or
// nowhere.
func (e *state) begin(p *peer) error {
	in := &p.in
	h, err := wire.Parse(in.head[:])
	if err != nil {
		return err
	}
	in.h, in.rest, in.into, in.long = h, 0, nil, h.IsMessage() && h.Size >= directLimit
	switch h.Kind {
	case wire.Eager:
		if err := p.received.Eager(int(h.Size)); err != nil {
			return err
		}
		in.rest = int(h.Size)
		if in.op = e.claim(p, h); in.op != nil {
			in.into = in.op.buf[:h.Size]
		} else {
			in.m = matching.NewMessage(h, p.rank)
			in.into = in.m.Payload
		}
	case wire.Data:
		in.rest = int(h.Size)
		in.op = p.inbound[h.ID] // nil: its communicator has failed since
		if in.op == nil {
			break
		}
		come := in.op.come
		if in.op.come += in.rest; in.op.come > in.op.n {
			return fmt.Errorf("announced a message of %d bytes and sent %d", in.op.n, in.op.come)
		}
		in.into = in.op.buf[come:in.op.come]
	case wire.Abort, wire.Answer, wire.Cause:
		in.rest = int(h.Size)
		in.doc = slices.Grow(in.doc[:0], in.rest)[:in.rest]
		in.into = in.doc
	default:
		in.doc = in.doc[:0]
	}
	return e.filled(p, 0)
}

// filled counts n bytes of payload that have come, and acts on the frame once it is whole.
func (e *state) filled(p *peer, n int) error {
	in := &p.in
	if n > 0 && in.op != nil && in.h.Kind == wire.Data {
		e.moved++
	}
	in.rest -= n
	if in.into != nil {
		in.into = in.into[n:]
	}
	if in.rest > 0 {
		return nil
	}
	op, m := in.op, in.m
	in.op, in.m, in.into = nil, nil, nil
	switch in.h.Kind {
	case wire.Eager:
		if m != nil {
			e.route(p, m)
			return nil
		}
		e.consume(p, int(in.h.Size))
		op.finish(nil)
	case wire.Data:
		if op != nil && op.come == op.n {
			delete(p.inbound, op.id)
			op.finish(nil)
		}
	default:
		return e.receive(p, in.h, in.doc)
	}
	return nil
}

// claim takes out the receive that matches the eager message h, if the message fits: then its bytes go straight to the buffer.
func (e *state) claim(p *peer, h wire.Header) *operation {
	c := e.comms[h.Context]
	if c == nil || c.err != nil || h.Seq > 0 && h.Fingerprint != c.collectives.Last() {
		return nil
	}
	op, place := c.queues.Receive(&h, p.rank)
	if place < 0 || op.limit > 0 || op.refusal(&h, p.rank) != nil {
		return nil
	}
	c.queues.TakeReceive(place)
	if h.Seq > 0 {
		p.agreed = agreed{c, h.Seq}
	}
	op.matched(&h, p.rank)
	return op
}

// release takes op's buffer out of use. An eager message that is coming becomes an unexpected one; the rest of a rendezvous message is
// thrown away.
func (in *inbox) release(op *operation) {
	if in.op != op {
		return
	}
	in.op = nil
	if in.h.Kind == wire.Data {
		in.into = nil
		return
	}
	in.m = matching.NewMessage(in.h, op.source)
	come := copy(in.m.Payload, op.buf[:int(in.h.Size)-in.rest])
	in.into = in.m.Payload[come:]
}
