package endpoint

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

// receive acts on a control frame from p: one that brings no bytes of a message. payload is the inbox's.
func (e *state) receive(p *peer, h wire.Header, payload []byte) error {
	switch h.Kind {
	case wire.RTS:
		if err := p.received.RTS(); err != nil {
			return err
		}
		e.route(p, matching.NewMessage(h, p.rank))
	case wire.Leave:
		return e.receiveLeave(p, h)
	case wire.CTS, wire.Decline:
		if err := e.answeredRTS(p); err != nil {
			return err
		}
		op := e.sends[h.ID]
		if op == nil {
			return nil // its communicator has failed since
		}
		if op.peer != p.rank {
			return fmt.Errorf("answered message %d, which is for rank %d", h.ID, op.peer)
		}
		delete(e.sends, h.ID)
		if h.Kind == wire.Decline {
			op.finish(nil)
			return nil
		}
		e.enqueue(p, frame{Header: wire.Header{Kind: wire.Data, ID: h.ID, Size: uint64(len(op.buf))}, Payload: op.buf, Op: op})
	case wire.Credit:
		return p.sent.Return(h.Size)
	case wire.Abort:
		e.receiveAbort(p, h, payload)
	case wire.Cause:
		e.receiveCause(p, diagnosis.DecodeFailure(payload, p.rank, len(e.peers)))
	case wire.Goodbye:
		p.saidGoodbye = true
	case wire.Ask:
		e.receiveAsk(p, h)
	case wire.Answer:
		return e.receiveAnswer(p, h, payload)
	case wire.Eager, wire.Data: // filled acts on these
	}
	return nil
}

// route hands a message to its communicator, or keeps it until that is open, or drops it because that is over.
func (e *state) route(p *peer, m *matching.Message) {
	c := e.comms[m.Context]
	switch {
	case c != nil && c.err != nil:
		c.notify(p.rank)
		e.discard(p, m)
	case c != nil:
		c.arrive(m)
	case e.closed || e.hasRetired(m.Context):
		e.discard(p, m)
	default:
		e.early[m.Context] = append(e.early[m.Context], m)
	}
}

// discard drops m, which is of no use any more: somebody has copied its bytes, or nobody wants them. The sender gets the credit for m back,
// or does not send the bytes that it has announced.
func (e *state) discard(p *peer, m *matching.Message) {
	defer m.Free()
	switch m.Kind {
	case wire.Eager:
		e.consume(p, int(m.Size))
	case wire.RTS:
		e.enqueue(p, frame{Header: wire.Header{Kind: wire.Decline, ID: m.ID}})
	default:
	}
}

// arrive matches m with the oldest posted receive that wants it, or keeps it.
func (c *communicator) arrive(m *matching.Message) {
	if m.Seq > 0 {
		err := c.compare(m.Source, m.Fingerprint)
		if err == nil && m.Seq < c.collectives.Last().Seq {
			err = c.unwanted(m)
		}
		if err != nil {
			c.ep.discard(c.ep.peers[m.Source], m)
			return
		}
	}
	if op, place := c.queues.Receive(&m.Header, m.Source); place >= 0 {
		c.queues.TakeReceive(place)
		c.deliver(op, m)
		return
	}
	for _, probe := range c.queues.Keep(m) {
		probe.probed(m)
	}
}

// unwanted fails the communicator because m was sent in a collective in which this rank has awaited no such message.
func (c *communicator) unwanted(m *matching.Message) error {
	f := c.mismatch(m.Source, m.Fingerprint)
	f.Text, f.Calls[1].Bytes = "sent a message of another length", int(m.Whole)
	c.fail(f, -1)
	return f
}

// probed ends op, a probe, with m.
func (op *operation) probed(m *matching.Message) {
	op.matched(&m.Header, m.Source)
	op.call.Type = m.Call.Type
	op.finish(nil)
}

// matched makes the message m from source what op receives.
func (op *operation) matched(m *wire.Header, source int) {
	op.source, op.gotTag, op.n = source, m.Tag, int(m.Size)
}

// refusal is why op, which the message m from source matches, cannot have it, or nil.
func (op *operation) refusal(m *wire.Header, source int) error {
	rank, room := op.comm.ep.rank, len(op.buf)
	if op.limit > 0 && int(m.Size) <= op.limit {
		room = int(m.Size)
	}
	switch {
	case m.Call.Type != op.call.Type:
		return &diagnosis.Failure{
			Kind: diagnosis.Mismatched, Rank: source, Text: "sent another element type",
			Calls: []diagnosis.RankCall{{Rank: rank, Seq: op.seq, Call: op.call}, {Rank: source, Seq: m.Seq, Call: m.Call}},
		}
	case op.seq > 0 && (int(m.Size) != room || int(m.Whole) != op.whole):
		return &diagnosis.Failure{
			Kind: diagnosis.Mismatched, Rank: source, Text: "sent a message of another length",
			Calls: []diagnosis.RankCall{
				{Rank: rank, Seq: op.seq, Call: op.call, Bytes: op.whole},
				{Rank: source, Seq: m.Seq, Call: m.Call, Bytes: int(m.Whole)},
			},
		}
	case int(m.Size) > room:
		return &matching.TruncateError{Source: source, Got: int(m.Size), Room: room}
	}
	return nil
}

// deliver lets op receive m, which it matches. It copies the bytes of an eager message at once, and asks the sender of an announced one for
// them (CTS).
func (c *communicator) deliver(op *operation, m *matching.Message) {
	e := c.ep
	p, gone := e.peers[m.Source], c.gone(m.Source)
	op.matched(&m.Header, m.Source)
	refusal := op.refusal(&m.Header, m.Source)
	if op.limit > 0 && refusal == nil {
		op.buf = make([]byte, op.n)
	}
	switch {
	case refusal != nil:
	case m.Kind == wire.Eager:
		copy(op.buf, m.Payload)
	case gone != nil:
		e.discard(p, m)
		op.finish(op.without(gone))
		c.failBy(gone)
		return
	default:
		op.id = m.ID
		p.inbound[m.ID] = op
		e.enqueue(p, frame{Header: wire.Header{Kind: wire.CTS, ID: m.ID}})
		m.Free()
		return
	}
	if m.Source == e.rank {
		m.Free()
	} else {
		e.discard(p, m)
	}
	op.finish(refusal)
}

// consume returns credit for an eager message of n bytes from p that is not kept any longer.
func (e *state) consume(p *peer, n int) {
	if credit := p.received.Consume(n); credit > 0 {
		e.enqueue(p, frame{Header: wire.Header{Kind: wire.Credit, Size: credit}})
	}
}
