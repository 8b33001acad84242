package progress

// Short messages that a rank sends to a peer one after the other, while it waits for nothing, are coalesced (Nagle's algorithm): to send
// one costs more than all else about it. From some on they wait, in the system, until the peer has acknowledged those before, and go
// together: the peer is never without something to read. That ends when this rank waits for anything, or sends anything else, and
// nothing stays behind then. A peer that waits acknowledges at once what it has read.

const (
	// coalesceFrom is from how many messages on they are.
	coalesceFrom = 8
	// acknowledgeTurns is after how many idle turns who polls acknowledges what has been read.
	acknowledgeTurns = 32
)

// CountWrite counts a frame that is about to be written to c, a short message or something else, and begins or ends to coalesce. The
// mutex is held.
func (e *Engine) CountWrite(c *Conn, isShort bool) {
	switch {
	case c.coalescer == nil:
	case !isShort:
		c.short = 0
		e.uncork()
	case c.since != e.waits:
		c.since, c.short = e.waits, 1
	default:
		if c.short++; c.short == coalesceFrom {
			c.coalescer.Coalesce(true)
			e.corked = append(e.corked, c)
		}
	}
}

// uncork sends all that waits. The mutex is held.
func (e *Engine) uncork() {
	for _, c := range e.corked {
		if c.short = 0; c.coalescer != nil {
			c.coalescer.Coalesce(false)
		}
	}
	e.corked = e.corked[:0]
}

// BeginWait says that this rank is about to wait. The mutex is held.
func (e *Engine) BeginWait() {
	e.waits++
	e.uncork()
}

// acknowledge lets the peer of c, or all if c is nil, know what has been read. The mutex is held.
func (e *Engine) acknowledge(c *Conn) {
	for _, other := range e.conns {
		if other.coalescer != nil && (c == nil || c == other) {
			other.coalescer.Acknowledge()
		}
	}
}
