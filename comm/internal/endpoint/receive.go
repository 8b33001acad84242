package endpoint

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// receive acts on a frame from p that brings no bytes of a message. payload is the inbox's. The mutex is held.
func (e *Endpoint) receive(p *peer, h header, payload []byte) error {
	switch h.kind {
	case kindRTS:
		if err := p.unasked.keepAnnounced(); err != nil {
			return err
		}
		e.route(p, newMessage(h, p.rank))
	case kindLeave:
		return e.left(p, h)
	case kindCTS, kindDecline:
		if err := e.announcementAnswered(p); err != nil {
			return err
		}
		op := e.sends[h.id]
		if op == nil {
			return nil // its lane has failed since
		}
		if op.peer != p.rank {
			return fmt.Errorf("answered message %d, which is for rank %d", h.id, op.peer)
		}
		delete(e.sends, h.id)
		if h.kind == kindDecline {
			op.finish(nil)
			return nil
		}
		e.enqueue(p, frame{header: header{kind: kindData, id: h.id, size: uint64(len(op.buf))}, payload: op.buf, op: op})
	case kindCredit:
		if p.budget += int(h.size); p.budget > eagerBudget {
			return fmt.Errorf("gave back %d bytes more than it was sent", p.budget-eagerBudget)
		}
	case kindAbort:
		e.aborted(p, h.group, diagnosis.DecodeFailure(payload, p.rank, len(e.peers)))
	case kindCause:
		e.receiveCause(p, diagnosis.DecodeFailure(payload, p.rank, len(e.peers)))
	case kindGoodbye:
		p.left = true
	case kindAsk:
		e.asked(p, h)
	case kindAnswer:
		return e.answered(p, h, payload)
	case kindEager, kindData: // see Endpoint.took
	}
	return nil
}

// route hands a message to its lane, keeps it for a lane that is not open yet, or drops it because the lane is over.
func (e *Endpoint) route(p *peer, m *message) {
	l := e.lanes[m.group]
	switch {
	case l != nil && l.err != nil:
		l.tell(p.rank)
		e.refuse(p, m)
	case l != nil:
		l.arrive(m)
	case e.closed || e.hasRetired(m.group):
		e.refuse(p, m)
	default:
		e.early[m.group] = append(e.early[m.group], m)
	}
}

// refuse drops m; its sender gets its budget back, or is done with it.
func (e *Endpoint) refuse(p *peer, m *message) {
	defer m.free()
	switch m.kind {
	case kindEager:
		e.giveBack(p, m.cost())
	case kindRTS:
		e.enqueue(p, frame{header: header{kind: kindDecline, id: m.id}})
	default:
	}
}

// arrive matches m with the oldest posted receive that wants it, or keeps it.
func (l *Lane) arrive(m *message) {
	if m.seq > 0 {
		l.takeOver()
		err := l.compare(m.source, m.called())
		if err == nil && m.seq < l.collectives.Last().Seq {
			err = l.unwanted(m)
		}
		if err != nil {
			l.ep.refuse(l.ep.peers[m.source], m)
			return
		}
	}
	for i, op := range l.posted.all() {
		if !op.probe && op.matches(m) {
			l.posted.remove(i)
			l.deliver(op, m)
			return
		}
	}
	l.arrived.push(m)
	l.posted.removeFunc(func(op *Op) bool {
		if !op.probe || !op.matches(m) {
			return false
		}
		op.see(m)
		return true
	})
}

// unwanted fails the lane because m was sent in a collective in which this rank has awaited no such message. The mutex is held.
func (l *Lane) unwanted(m *message) error {
	f := l.mismatch(m.source, m.called())
	f.Text, f.Calls[1].Bytes = "sent a message of another length", int(m.whole)
	l.fail(f, -1)
	return f
}

// see ends op, a probe, with m.
func (op *Op) see(m *message) {
	op.source, op.gotTag, op.n, op.call.Type = m.source, m.tag, int(m.size), m.call.Type
	op.finish(nil)
}

func (op *Op) matches(m *message) bool {
	return op.seq == m.seq &&
		(op.peer == m.source || op.peer == AnySource) &&
		(op.tag == m.tag || (op.tag == AnyTag && op.seq == 0))
}

// take makes m what op receives.
func (op *Op) take(m *message) { op.source, op.gotTag, op.n = m.source, m.tag, int(m.size) }

// refusal is why op, which m matches, cannot have it, or nil.
func (op *Op) refusal(m *message) error {
	rank, room := op.lane.ep.rank, len(op.buf)
	if op.limit > 0 && int(m.size) <= op.limit {
		room = int(m.size)
	}
	switch {
	case m.call.Type != op.call.Type:
		return &diagnosis.Failure{
			Kind: diagnosis.Mismatched, Rank: m.source, Text: "sent another element type",
			Calls: []diagnosis.RankCall{{Rank: rank, Seq: op.seq, Call: op.call}, {Rank: m.source, Seq: m.seq, Call: m.call}},
		}
	case op.seq > 0 && (int(m.size) != room || int(m.whole) != op.whole):
		return &diagnosis.Failure{
			Kind: diagnosis.Mismatched, Rank: m.source, Text: "sent a message of another length",
			Calls: []diagnosis.RankCall{
				{Rank: rank, Seq: op.seq, Call: op.call, Bytes: op.whole},
				{Rank: m.source, Seq: m.seq, Call: m.call, Bytes: int(m.whole)},
			},
		}
	case int(m.size) > room:
		return &TruncateError{Source: m.source, Got: int(m.size), Room: room}
	}
	return nil
}

// deliver gives m to op, which it matches: the bytes of an eager message at once, those of a large one by asking
// its sender. The mutex is held.
func (l *Lane) deliver(op *Op, m *message) {
	e := l.ep
	p, gone := e.peers[m.source], l.gone(m.source)
	op.take(m)
	refusal := op.refusal(m)
	if op.limit > 0 && refusal == nil {
		op.buf = make([]byte, op.n)
	}
	switch {
	case refusal != nil:
	case m.kind == kindEager:
		copy(op.buf, m.payload)
	case gone != nil:
		e.refuse(p, m)
		op.finish(gone)
		l.failBy(gone)
		return
	default:
		op.id = m.id
		p.inbound[m.id] = op
		e.enqueue(p, frame{header: header{kind: kindCTS, id: m.id}})
		m.free()
		return
	}
	if m.source == e.rank {
		m.free()
	} else {
		e.refuse(p, m) // it has been dealt with
	}
	op.finish(refusal)
}
