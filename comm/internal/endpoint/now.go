package endpoint

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/wire"
)

// Blocking sends and receives of short messages take a short cut where nothing stands in the way: they are over before there
// would be an Op. What they leave behind is the same, and whatever else comes up goes the long way.

const (
	// nowLimit is the longest message, in bytes, that takes the short cut.
	nowLimit = 8 << 10
	// nowLooks is how often a receive looks for a message before it lets others have their turn, oversubscribedLooks the same where
	// the sender may need the processor.
	nowLooks            = 2000
	oversubscribedLooks = 10
)

// isClear says whether messages to and from p may take the short cut, as far as the lane and the stream go. The mutex is held.
func (l *Lane) isClear(p *peer) bool {
	return p.link.Window != nil && p.out.Len() == 0 && !p.broken && !l.over.Load() && (l.left == nil || l.left[p.rank] == nil)
}

// SendNow sends buf to dst, point to point, if that can be done at once, and says whether it has.
func (l *Lane) SendNow(dst, tag int, c call.Call, buf []byte) bool {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[dst]
	if len(buf) > nowLimit || !l.isClear(p) || p.sent.HasWaiting(0) {
		return false
	}
	for !p.sent.FitsShort(len(buf)) { // it may have been given back
		if !e.pull(p) || p.link.Window == nil {
			return false
		}
	}
	h := wire.Header{Kind: wire.Eager, Tag: int32(tag), Context: l.id, Size: uint64(len(buf)), Fingerprint: call.Fingerprint{Call: c}}
	if !p.link.Window.Put(h.Append(p.out.Head()), buf) {
		return false
	}
	p.sent.Use(len(buf))
	l.transfers.Note(cpu.Now(), c, dst, tag, len(buf), 0)
	return true
}

// RecvNow receives a message of n bytes from src, point to point, if it comes at once, and says whether it has.
func (l *Lane) RecvNow(src, tag int, c call.Call, buf []byte) (n int, ok bool) {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	p, looks := e.peers[src], nowLooks
	if e.opt.Oversubscribed {
		looks = oversubscribedLooks
	}
	if !e.engine.BeginPoll() {
		return 0, false
	}
	began := cpu.Now()
	for l.isClear(p) && l.queues.IsEmpty() && p.in.rest == 0 && p.in.have == 0 {
		b := p.link.Window.Peek(looks)
		if len(b) < wire.HeaderSize {
			break
		}
		n := wire.MatchEager(b, l.id, tag, c.Type)
		if n < 0 { // something else comes first
			e.pull(p)
			continue
		}
		if n > len(buf) || wire.HeaderSize+n > len(b) || p.received.Eager(n) != nil { // too long, not here as a whole, or too much
			break
		}
		copy(buf, b[wire.HeaderSize:wire.HeaderSize+n])
		p.link.Window.Skip(wire.HeaderSize + n)
		l.transfers.Note(began, c, src, tag, 0, n)
		e.consume(p, n)
		return n, true
	}
	return 0, false
}
