package endpoint

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/wire"
)

// Blocking sends and receives of short messages take a short cut if possible: they end at once, without an Op. Their effects are those
// of the long way. In every other case the caller takes the long way, by Send and Recv.

const (
	// nowLimit is the longest message, in bytes, that takes the short cut.
	nowLimit = 8 << 10
	// nowLooks is how often a receive looks for a message before it lets others have their turn, oversubscribedLooks the same where
	// the sender may need the processor.
	nowLooks            = 2000
	oversubscribedLooks = 10
)

// isClear reports whether messages to and from p may take the short cut, as far as the communicator and the stream go.
func (c *communicator) isClear(p *peer) bool {
	return p.link.Memory != nil && p.out.Len() == 0 && p.fault == nil && !c.unusable.Load() && (c.closedBy == nil || c.closedBy[p.rank] == nil)
}

// SendNow sends buf to dst, point to point, if that can be done at once, and reports whether it has.
func (c *Communicator) SendNow(dst, tag int, what call.Packed, buf []byte) bool {
	in := c.lock()
	defer in.unlock()
	e := in.ep
	p := e.peers[dst]
	if len(buf) > nowLimit || !in.isClear(p) || p.sent.HasWaiting(0) {
		return false
	}
	for !p.sent.FitsShort(len(buf)) { // it may have been given back
		if !e.pull(p) || p.link.Memory == nil {
			return false
		}
	}
	h := wire.Header{Kind: wire.Eager, Tag: int32(tag), Context: c.id, Size: uint64(len(buf)), Fingerprint: call.Fingerprint{Call: what.Call()}}
	if !p.link.Memory.Put(h.Append(p.out.Head()), buf) {
		return false
	}
	p.sent.Use(len(buf))
	c.transfers.NoteTransfer(cpu.Now(), what, dst, tag, len(buf), 0)
	return true
}

// RecvNow receives a message of n bytes from src, point to point, if it comes at once, and reports whether it has.
func (c *Communicator) RecvNow(src, tag int, what call.Packed, buf []byte) (n int, ok bool) {
	in := c.lock()
	defer in.unlock()
	e := in.ep
	p, looks := e.peers[src], nowLooks
	if e.opt.Oversubscribed {
		looks = oversubscribedLooks
	}
	if !e.engine.BeginPoll() {
		return 0, false
	}
	began := cpu.Now()
	for in.isClear(p) && c.queues.IsEmpty() && p.in.rest == 0 && p.in.have == 0 {
		b := p.link.Memory.Peek(looks)
		if len(b) < wire.HeaderSize {
			break
		}
		n := wire.MatchEager(b, c.id, tag, what.Type())
		if n < 0 { // something else comes first
			e.pull(p)
			continue
		}
		if n > len(buf) || wire.HeaderSize+n > len(b) || p.received.Eager(n) != nil { // too long, not here as a whole, or too much
			break
		}
		copy(buf, b[wire.HeaderSize:wire.HeaderSize+n])
		p.link.Memory.Skip(wire.HeaderSize + n)
		c.transfers.NoteTransfer(began, what, src, tag, 0, n)
		e.consume(p, n)
		return n, true
	}
	return 0, false
}
