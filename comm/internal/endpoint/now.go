package endpoint

import (
	"encoding/binary"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// Blocking sends and receives of short messages take a short cut where nothing stands in the way: they are over before there
// would be an Op. What they leave behind is the same, and whatever else comes up goes the long way.

const (
	// nowLimit is the longest message, in bytes, that takes the short cut.
	nowLimit = 8 << 10
	// nowLooks is how often a receive looks for a message before it lets others have their turn, crowdedLooks the same where
	// the sender may need the processor.
	nowLooks     = 2000
	crowdedLooks = 10
)

// isClear says whether messages to and from p may take the short cut, as far as the lane and the stream go. The mutex is held.
func (l *Lane) isClear(p *peer) bool {
	return p.window != nil && len(p.out) == 0 && !p.broken && !l.over.Load() && (l.left == nil || l.left[p.rank] == nil)
}

// SendNow sends buf to dst, point to point, if that can be done at once, and says whether it has.
func (l *Lane) SendNow(dst, tag int, call call.Call, buf []byte) bool {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	p, cost := e.peers[dst], eagerCost(len(buf))
	if len(buf) > nowLimit || !l.isClear(p) || len(p.announcements.transfers) > 0 {
		return false
	}
	for cost > p.budget { // it may have been given back
		if !e.pull(p) || p.window == nil {
			return false
		}
	}
	h := header{kind: kindEager, tag: int32(tag), group: l.id, size: uint64(len(buf)), call: call}
	if !p.window.Put(h.append(p.heads[0][:0]), buf) {
		return false
	}
	p.budget -= cost
	l.transfers.Note(cpu.Now(), call, dst, tag, len(buf), 0)
	return true
}

// RecvNow receives a message of n bytes from src, point to point, if it comes at once, and says whether it has.
func (l *Lane) RecvNow(src, tag int, call call.Call, buf []byte) (n int, ok bool) {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	p, looks := e.peers[src], nowLooks
	if e.opt.Crowded {
		looks = crowdedLooks
	}
	began := cpu.Now()
	e.polls++
	for l.isClear(p) && !e.polling && l.posted.len() == 0 && l.arrived.len() == 0 && p.in.rest == 0 && p.in.have == 0 {
		b := p.window.Peek(looks)
		if len(b) < headerSize {
			break
		}
		n := awaited(b, l.id, tag, call.Type)
		if n < 0 { // something else comes first
			e.pull(p)
			continue
		}
		if n > len(buf) || headerSize+n > len(b) { // too long, or not here as a whole
			break
		}
		copy(buf, b[headerSize:headerSize+n])
		p.window.Skip(headerSize + n)
		p.unasked.eager += eagerCost(n)
		l.transfers.Note(began, call, src, tag, 0, n)
		e.giveBack(p, eagerCost(n))
		return n, true
	}
	return 0, false
}

// awaited is the length of the eager message, point to point with that tag and type in that group, that b begins with, or -1 if
// it is something else.
func awaited(b []byte, group uint64, tag int, typ uint8) int {
	if kind(b[0]) != kindEager || b[2] != typ || binary.LittleEndian.Uint32(b[4:]) != uint32(tag) ||
		binary.LittleEndian.Uint64(b[8:]) != group || binary.LittleEndian.Uint64(b[16:]) != 0 {
		return -1
	}
	return int(min(binary.LittleEndian.Uint64(b[24:]), maxMessage))
}
