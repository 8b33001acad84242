package endpoint

import (
	"bufio"
	"fmt"
	"slices"
)

// read is p's reader: it takes frames off the stream until it breaks.
func (e *Endpoint) read(p *peer) {
	defer e.wg.Done()
	r := bufio.NewReaderSize(p.conn, eagerLimit)
	head := make([]byte, headerSize)
	scratch := make([]byte, 0, 4<<10)
	for {
		err := e.readPayload(p, r, head, nil)
		var h header
		if err == nil {
			h, err = parseHeader(head)
		}
		if err == nil && (h.kind == kindEager || h.kind == kindAbort || h.kind == kindAnswer) {
			if int(h.size) > cap(scratch) {
				scratch = make([]byte, 0, eagerLimit)
			}
			scratch = scratch[:h.size]
			err = e.readPayload(p, r, scratch, nil)
		}
		switch {
		case err != nil:
		case h.kind == kindData:
			err = e.receiveData(p, r, h)
		default:
			err = e.receive(p, h, scratch)
		}
		if err != nil {
			e.broke(p, err)
			return
		}
	}
}

// broke finds out what became of p, whose stream ended with err, before anybody is told. Otherwise a rank that fails
// because of p could be gone before p itself, and look like the cause.
func (e *Endpoint) broke(p *peer, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ask := e.opt.Died; ask != nil && !p.left && !e.closed {
		e.mu.Unlock()
		fate := ask(p.rank)
		e.mu.Lock()
		p.fate = fate
	}
	e.lost(p, err)
}

// receive acts on a frame from p. payload is the reader's; what is kept of it is copied.
func (e *Endpoint) receive(p *peer, h header, payload []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch h.kind {
	case kindEager, kindRTS, kindLeave:
		m := &message{header: h, source: p.rank}
		if h.kind == kindEager {
			m.payload = payload
		}
		e.route(p, m)
	case kindCTS, kindDecline:
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
		f := decodeFailure(payload, p.rank, len(e.peers))
		if l := e.lanes[h.group]; l != nil {
			l.fail(f, p.rank)
		} else if !e.hasRetired(h.group) && len(e.doomed) < retiredLanes {
			e.doomed[h.group] = f
		}
	case kindGoodbye:
		p.left = true
	case kindAsk:
		e.asked(p, h)
	case kindAnswer:
		return e.answered(p, h, payload)
	case kindData: // see receiveData
	}
	return nil
}

// route hands a message to its lane, keeps it for a lane that is not open yet, or drops it because the lane is over.
func (e *Endpoint) route(p *peer, m *message) {
	l := e.lanes[m.group]
	switch {
	case l != nil && m.kind == kindLeave:
		l.leave(p.rank)
	case l != nil && l.err != nil:
		l.tell(p.rank)
		e.refuse(p, m)
	case l != nil:
		l.arrive(m)
	case e.closed || e.hasRetired(m.group):
		e.refuse(p, m)
	default:
		e.early[m.group] = append(e.early[m.group], m.keep())
	}
}

// refuse drops m; its sender gets its budget back, or is done with it.
func (e *Endpoint) refuse(p *peer, m *message) {
	switch m.kind {
	case kindEager:
		e.giveBack(p, m.cost())
	case kindRTS:
		e.enqueue(p, frame{header: header{kind: kindDecline, id: m.id}})
	default:
	}
}

// keep makes m independent of the reader's buffer.
func (m *message) keep() *message {
	m.payload = append([]byte(nil), m.payload...)
	return m
}

// arrive matches m with the oldest posted receive that wants it, or keeps it.
func (l *Lane) arrive(m *message) {
	if m.seq > 0 {
		l.catchUp()
	}
	if m.seq > 0 && (m.seq < l.seq || (m.seq == l.seq && m.call != l.call)) {
		l.fail(l.mismatch(m.source, m.header), -1)
		l.ep.refuse(l.ep.peers[m.source], m)
		return
	}
	for i, op := range l.posted {
		if !op.probe && op.matches(m) {
			l.posted = slices.Delete(l.posted, i, i+1)
			l.deliver(op, m)
			return
		}
	}
	l.arrived = append(l.arrived, m.keep())
	l.posted = slices.DeleteFunc(l.posted, func(op *Op) bool {
		if !op.probe || !op.matches(m) {
			return false
		}
		op.see(m)
		return true
	})
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

// deliver gives m to op, which it matches: the bytes of an eager message at once, those of a large one by asking
// its sender. The mutex is held.
func (l *Lane) deliver(op *Op, m *message) {
	e := l.ep
	p, gone := e.peers[m.source], l.gone(m.source)
	op.source, op.gotTag, op.n = m.source, m.tag, int(m.size)
	if op.limit > 0 && op.n <= op.limit && m.call.Type == op.call.Type {
		op.buf = make([]byte, op.n)
	}
	var refusal error
	switch {
	case m.call.Type != op.call.Type:
		refusal = &Failure{
			Kind: Mismatched, Rank: m.source, Text: "sent another element type",
			Calls: []RankCall{{Rank: e.rank, Seq: op.seq, Call: op.call}, {Rank: m.source, Seq: m.seq, Call: m.call}},
		}
	case op.seq > 0 && op.n != len(op.buf):
		refusal = &Failure{
			Kind: Mismatched, Rank: m.source, Text: "sent a message of another length",
			Calls: []RankCall{
				{Rank: e.rank, Seq: op.seq, Call: op.call, Bytes: len(op.buf)},
				{Rank: m.source, Seq: m.seq, Call: m.call, Bytes: op.n},
			},
		}
	case op.n > len(op.buf):
		refusal = &TruncateError{Source: m.source, Got: op.n, Room: len(op.buf)}
	}
	switch {
	case m.kind == kindRTS && refusal == nil && gone == nil:
		op.id = m.id
		p.inbound[m.id] = op
		e.enqueue(p, frame{header: header{kind: kindCTS, id: m.id}})
		return
	case m.kind == kindRTS && refusal == nil:
		op.finish(gone)
		l.failBy(gone)
		return
	case m.source != e.rank:
		e.refuse(p, m)
	}
	if refusal == nil {
		copy(op.buf, m.payload)
	}
	op.finish(refusal)
}

// receiveData reads the bytes of a large message into the buffer of the receive that asked for them.
func (e *Endpoint) receiveData(p *peer, r *bufio.Reader, h header) error {
	e.mu.Lock()
	op := p.inbound[h.id]
	delete(p.inbound, h.id)
	if op != nil {
		if int(h.size) != op.n {
			e.mu.Unlock()
			return fmt.Errorf("announced a message of %d bytes and sent %d", op.n, h.size)
		}
		op.held = true
	}
	e.mu.Unlock()
	if op == nil {
		return e.discard(p, r, int(h.size)) // its lane has failed since
	}
	err := e.readPayload(p, r, op.buf[:op.n], op.abandoned)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case op.finished() || err != nil && op.abandoned():
	case err != nil:
		op.held = false // drop ends it, once it is known what has become of p
	default:
		op.release()
	}
	return err
}
