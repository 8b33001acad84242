package endpoint

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

// receive acts on a frame from p that brings no bytes of a message. payload is the inbox's. The mutex is held.
func (e *Endpoint) receive(p *peer, h wire.Header, payload []byte) error {
	switch h.Kind {
	case wire.RTS:
		if err := p.received.RTS(); err != nil {
			return err
		}
		e.route(p, matching.NewMessage(h, p.rank))
	case wire.Leave:
		return e.left(p, h)
	case wire.CTS, wire.Decline:
		if err := e.answeredRTS(p); err != nil {
			return err
		}
		op := e.sends[h.ID]
		if op == nil {
			return nil // its lane has failed since
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
		e.aborted(p, h.Context, diagnosis.DecodeFailure(payload, p.rank, len(e.peers)))
	case wire.Cause:
		e.receiveCause(p, diagnosis.DecodeFailure(payload, p.rank, len(e.peers)))
	case wire.Goodbye:
		p.left = true
	case wire.Ask:
		e.asked(p, h)
	case wire.Answer:
		return e.answered(p, h, payload)
	case wire.Eager, wire.Data: // see Endpoint.took
	}
	return nil
}

// route hands a message to its lane, keeps it for a lane that is not open yet, or drops it because the lane is over.
func (e *Endpoint) route(p *peer, m *matching.Message) {
	l := e.lanes[m.Context]
	switch {
	case l != nil && l.err != nil:
		l.tell(p.rank)
		e.refuse(p, m)
	case l != nil:
		l.arrive(m)
	case e.closed || e.hasRetired(m.Context):
		e.refuse(p, m)
	default:
		e.early[m.Context] = append(e.early[m.Context], m)
	}
}

// refuse drops m; its sender gets its budget back, or is done with it.
func (e *Endpoint) refuse(p *peer, m *matching.Message) {
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
func (l *Lane) arrive(m *matching.Message) {
	if m.Seq > 0 {
		l.takeOver()
		err := l.compare(m.Source, m.Fingerprint)
		if err == nil && m.Seq < l.collectives.Last().Seq {
			err = l.unwanted(m)
		}
		if err != nil {
			l.ep.refuse(l.ep.peers[m.Source], m)
			return
		}
	}
	if op, place := l.queues.Receive(&m.Header, m.Source); place >= 0 {
		l.queues.TakeReceive(place)
		l.deliver(op, m)
		return
	}
	for _, probe := range l.queues.Keep(m) {
		probe.see(m)
	}
}

// unwanted fails the lane because m was sent in a collective in which this rank has awaited no such message. The mutex is held.
func (l *Lane) unwanted(m *matching.Message) error {
	f := l.mismatch(m.Source, m.Fingerprint)
	f.Text, f.Calls[1].Bytes = "sent a message of another length", int(m.Whole)
	l.fail(f, -1)
	return f
}

// see ends op, a probe, with m.
func (op *Op) see(m *matching.Message) {
	op.take(&m.Header, m.Source)
	op.call.Type = m.Call.Type
	op.finish(nil)
}

// take makes the message m from source what op receives.
func (op *Op) take(m *wire.Header, source int) {
	op.source, op.gotTag, op.n = source, m.Tag, int(m.Size)
}

// refusal is why op, which the message m from source matches, cannot have it, or nil.
func (op *Op) refusal(m *wire.Header, source int) error {
	rank, room := op.lane.ep.rank, len(op.buf)
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
		return &TruncateError{Source: source, Got: int(m.Size), Room: room}
	}
	return nil
}

// deliver gives m to op, which it matches: the bytes of an eager message at once, those of a large one by asking
// its sender. The mutex is held.
func (l *Lane) deliver(op *Op, m *matching.Message) {
	e := l.ep
	p, gone := e.peers[m.Source], l.gone(m.Source)
	op.take(&m.Header, m.Source)
	refusal := op.refusal(&m.Header, m.Source)
	if op.limit > 0 && refusal == nil {
		op.buf = make([]byte, op.n)
	}
	switch {
	case refusal != nil:
	case m.Kind == wire.Eager:
		copy(op.buf, m.Payload)
	case gone != nil:
		e.refuse(p, m)
		op.finish(gone)
		l.failBy(gone)
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
		e.refuse(p, m) // it has been dealt with
	}
	op.finish(refusal)
}
