package endpoint

import (
	"encoding/binary"
)

// Blocking sends and receives of short messages take a short cut where nothing stands in the way: they are over before there
// would be an Op. What they leave behind is the same, and whatever else comes up goes the long way.

const (
	// nowLimit is the longest message, in bytes, that takes the short cut: it is in a stream as a whole, or not at all.
	nowLimit = 8 << 10
	// nowLooks is how often a receive looks for a message before it lets others have their turn, crowdedLooks the same where
	// the sender may need the processor.
	nowLooks     = 500
	crowdedLooks = 10
)

// isClear says whether messages to and from p may take the short cut, as far as the lane and the stream go. The mutex is held.
func (l *Lane) isClear(p *peer) bool {
	return p.quick && len(p.out) == 0 && !p.broken && !l.over.Load() && l.left[p.rank] == nil
}

// SendNow sends buf to dst, point to point, if that can be done at once, and says whether it has.
func (l *Lane) SendNow(dst, tag int, call Call, buf []byte) bool {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	p, cost := e.peers[dst], len(buf)+headerSize
	if len(buf) > nowLimit || cost > p.budget || !l.isClear(p) {
		return false
	}
	h := header{kind: kindEager, tag: int32(tag), group: l.id, size: uint64(len(buf)), call: call}
	v := append(p.slices[:0], h.append(p.heads[0][:0]), buf)
	n, _ := p.stream.TryWrite(v) // what is wrong the long way finds out
	v[1] = nil
	if n == 0 {
		return false
	}
	p.budget -= cost
	l.transfers.note(call, dst, tag, len(buf), 0)
	return true
}

// RecvNow receives a message from src, point to point, if it comes at once: then op is nil. Else it is a Recv.
func (l *Lane) RecvNow(src, tag int, call Call, buf []byte) (op *Op, gotTag, n int) {
	op, gotTag, n, ok := l.recvNow(src, tag, call, buf)
	if !ok {
		op = l.Recv(src, tag, 0, call, buf)
	}
	return op, gotTag, n
}

func (l *Lane) recvNow(src, tag int, call Call, buf []byte) (op *Op, gotTag, n int, ok bool) {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[src]
	for l.isClear(p) && !e.polling && len(l.posted) == 0 && len(l.arrived) == 0 && e.look(p) {
		gotTag, n = p.in.awaited(l.id, call.Type)
		if n < 0 || n > min(len(buf), nowLimit) || tag != gotTag && tag != AnyTag {
			e.begun(p, 0)
			continue
		}
		come := 0
		if n > 0 {
			come, _ = p.stream.TryRead(buf[:n])
		}
		if come < n { // the rest is on its way
			op = newOp(src, tag, call)
			op.buf = buf
			l.addOp(op)
			l.posted = append(l.posted, op)
			e.begun(p, come)
			return op, 0, 0, true
		}
		l.transfers.note(call, src, gotTag, 0, n)
		e.giveBack(p, n+headerSize)
		return nil, gotTag, n, true
	}
	return nil, 0, 0, false
}

// look waits for a moment, unless a frame of p's is on its way, until the header of one has come. The mutex is held.
func (e *Endpoint) look(p *peer) bool {
	in := &p.in
	if p.ended || in.rest > 0 || in.have > 0 {
		return false
	}
	looks := nowLooks
	if e.opt.Crowded {
		looks = crowdedLooks
	}
	e.polls++
	for range looks {
		n, err := p.stream.TryRead(in.head[:])
		if n == headerSize {
			return true
		}
		if n > 0 || err != nil {
			in.have = n
			e.finished(p, err)
			return false
		}
	}
	return false
}

// begun lets the inbox have the frame whose header look has found, of which come bytes are where they go. The mutex is held.
func (e *Endpoint) begun(p *peer, come int) {
	err := e.begin(p)
	if err == nil && come > 0 {
		err = e.took(p, come)
	}
	e.finished(p, err)
}

// awaited are tag and length of the eager message, point to point in that group, whose header has come; the length is -1 if it
// is something else.
func (in *inbox) awaited(group uint64, typ uint8) (tag, n int) {
	b := &in.head
	if kind(b[0]) != kindEager || b[2] != typ || binary.LittleEndian.Uint64(b[8:]) != group || binary.LittleEndian.Uint64(b[16:]) != 0 {
		return 0, -1
	}
	return int(int32(binary.LittleEndian.Uint32(b[4:]))), int(min(binary.LittleEndian.Uint64(b[24:]), maxMessage))
}
