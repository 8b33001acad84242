package endpoint

import "github.com/gorun/gorun/comm/internal/wire"

// A burst is short messages that a rank sends to a peer one after the other, and waits for nothing meanwhile. To send one costs
// more than all else about it. So from some on they wait, in the system, until the peer has let know that it has read those
// before, and go together: the peer is never without something to read. A burst ends when this rank waits for anything, or sends
// anything else, and nothing stays behind then. A peer that waits in vain lets know at once what it has read.

const (
	// burstLength is after how many messages they are a burst.
	burstLength = 8
	// burstLimit is how long they may be, in bytes.
	burstLimit = 32 << 10
	// vainTurns is after how many turns in vain who polls says what has been read.
	vainTurns = 32
)

// gather counts a frame with header h that is about to be written to p, and begins or ends a burst. The mutex is held.
func (e *Endpoint) gather(p *peer, h *wire.Header) {
	switch {
	case p.coalescer == nil:
	case h.Kind != wire.Eager || h.Size > burstLimit:
		p.row = 0
		e.endBursts()
	case p.since != e.waits:
		p.since, p.row = e.waits, 1
	default:
		if p.row++; p.row == burstLength {
			p.coalescer.Coalesce(true)
			e.bursts = append(e.bursts, p)
		}
	}
}

// endBursts lets go of all that waits. The mutex is held.
func (e *Endpoint) endBursts() {
	for _, p := range e.bursts {
		if p.row = 0; p.coalescer != nil {
			p.coalescer.Coalesce(false)
		}
	}
	e.bursts = e.bursts[:0]
}

// beginWait says that this rank is about to wait. The mutex is held.
func (e *Endpoint) beginWait() {
	e.waits++
	e.endBursts()
}

// acknowledge lets those that op waits for know what has been read. The mutex is held.
func (e *Endpoint) acknowledge(op *Op) {
	for _, p := range e.streams {
		if p.coalescer != nil && (op.peer < 0 || op.peer == p.rank) {
			p.coalescer.Acknowledge()
		}
	}
}
