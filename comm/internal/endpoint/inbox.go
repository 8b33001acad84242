package endpoint

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// An inbox takes apart the frames of a peer as their bytes come. Guarded by the endpoint's mutex.
type inbox struct {
	head [headerSize]byte
	have int // bytes of head that have come

	// Of the frame whose payload is coming.
	h    header
	long bool     // it is one to be read straight to where it goes
	rest int      // bytes that have not come
	into []byte   // where they go; nil: they are thrown away
	op   *Op      // the receive whose buffer that is part of
	m    *message // or the message that keeps them
	doc  []byte   // or the document of an abort, answer or cause frame
}

// A message has arrived. Of one that is only announced (kindRTS) the payload is still at the sender.
type message struct {
	header
	source  int
	payload []byte
}

// cost is what an eager message takes from its sender's budget: its bytes, and as much again as keeps short ones from coming in
// such numbers that to look through them takes long.
func (h *header) cost() int { return eagerCost(int(h.size)) }

func eagerCost(n int) int { return n + messageCost }

// messages has those that are free, by the logarithm of how long they may be: as long as what comes without being asked for.
var messages [21]sync.Pool

// newMessage is a message from source with room for what follows h.
func newMessage(h header, source int) *message {
	size := 0
	if h.kind == kindEager {
		size = int(h.size)
	}
	if size > LongestPiece { // to oneself
		return &message{header: h, source: source, payload: make([]byte, size)}
	}
	class := bits.Len(uint(max(size, 1) - 1))
	m, _ := messages[class].Get().(*message)
	if m == nil {
		m = &message{payload: make([]byte, 1<<class)}
	}
	m.header, m.source, m.payload = h, source, m.payload[:size]
	return m
}

// free makes m's memory that of another message.
func (m *message) free() {
	if cap(m.payload) <= LongestPiece {
		messages[bits.Len(uint(cap(m.payload)-1))].Put(m)
	}
}

// feed takes in b, the next bytes from p. The mutex is held.
func (e *Endpoint) feed(p *peer, b []byte) error {
	in := &p.in
	for len(b) > 0 {
		if in.rest > 0 {
			n := min(len(b), in.rest)
			copy(in.into, b[:n])
			b = b[n:]
			if err := e.took(p, n); err != nil {
				return err
			}
			continue
		}
		n := copy(in.head[in.have:], b)
		b = b[n:]
		if in.have += n; in.have < headerSize {
			return nil
		}
		in.have = 0
		if err := e.begin(p); err != nil {
			return err
		}
	}
	return nil
}

// begin finds out where the payload of the frame goes whose header has come.
func (e *Endpoint) begin(p *peer) error {
	in := &p.in
	h, err := parseHeader(in.head[:])
	if err != nil {
		return err
	}
	in.h, in.rest, in.into, in.long = h, 0, nil, isMessage(h.kind) && h.size >= directLimit
	switch h.kind {
	case kindEager:
		if err := p.unasked.keepEager(&h); err != nil {
			return err
		}
		in.rest = int(h.size)
		if in.op = e.claim(p, h); in.op != nil {
			in.into = in.op.buf[:h.size]
		} else {
			in.m = newMessage(h, p.rank)
			in.into = in.m.payload
		}
	case kindData:
		in.rest = int(h.size)
		in.op = p.inbound[h.id] // nil: its lane has failed since
		delete(p.inbound, h.id)
		if in.op == nil {
			break
		}
		if in.op.n != int(h.size) {
			return fmt.Errorf("announced a message of %d bytes and sent %d", in.op.n, h.size)
		}
		in.into = in.op.buf[:h.size]
	case kindAbort, kindAnswer, kindCause:
		in.rest = int(h.size)
		in.doc = slices.Grow(in.doc[:0], in.rest)[:in.rest]
		in.into = in.doc
	default:
		in.doc = in.doc[:0]
	}
	return e.took(p, 0)
}

// isMessage says whether the payload of a frame is a message.
func isMessage(k kind) bool { return k == kindEager || k == kindData }

// took counts n bytes of payload that have come to where they go, and acts on the frame once it is whole.
func (e *Endpoint) took(p *peer, n int) error {
	in := &p.in
	in.rest -= n
	if in.into != nil {
		in.into = in.into[n:]
	}
	if in.rest > 0 {
		return nil
	}
	op, m := in.op, in.m
	in.op, in.m, in.into = nil, nil, nil
	switch in.h.kind {
	case kindEager:
		if m != nil {
			e.route(p, m)
			return nil
		}
		e.giveBack(p, in.h.cost())
		op.finish(nil)
	case kindData:
		if op != nil {
			op.finish(nil)
		}
	default:
		return e.receive(p, in.h, in.doc)
	}
	return nil
}

// claim finds the receive that awaits the eager message h, if it fits: its bytes can then go straight to their place.
func (e *Endpoint) claim(p *peer, h header) *Op {
	l := e.lanes[h.group]
	if l == nil || l.err != nil || h.seq > 0 && h.called() != l.collectives.Last() {
		return nil
	}
	m := message{header: h, source: p.rank}
	for i, op := range l.posted.all() {
		if op.probe || !op.matches(&m) {
			continue
		}
		if op.limit > 0 || op.refusal(&m) != nil {
			return nil
		}
		l.posted.remove(i)
		if h.seq > 0 {
			p.agreed = agreed{l, h.seq}
		}
		op.take(&m)
		return op
	}
	return nil
}

// let takes op's buffer out of use: what is still to come of an eager message, and has come, is kept as if no receive had
// claimed it, and that of a large one is thrown away.
func (in *inbox) let(op *Op) {
	if in.op != op {
		return
	}
	in.op = nil
	if in.h.kind == kindData {
		in.into = nil
		return
	}
	in.m = newMessage(in.h, op.source)
	come := copy(in.m.payload, op.buf[:int(in.h.size)-in.rest])
	in.into = in.m.payload[come:]
}
