package progress

// A rank may send many short messages to a peer, one after the other, and wait for nothing meanwhile. Then most of the cost is the
// system call that sends. So the stream holds them back, from number coalesceFrom on, until the peer has acknowledged earlier ones, and sends
// them together (Nagle's algorithm). The peer always has something to read. Holding back ends, and all is sent,
// when this rank waits or sends anything else. A peer that waits acknowledges at once what it has read.

const (
	coalesceFrom = 8
	// acknowledgeTurns is the number of idle turns after which a goroutine that polls acknowledges what it has read.
	acknowledgeTurns = 32
)

// CountWrite counts a frame of so many bytes that is about to be written to c, and begins or ends to hold messages back. mayWait is set for a
// message for which nobody waits yet. The mutex is held.
func (e *Engine) CountWrite(c *Conn, bytes int, mayWait bool) {
	switch {
	case c.coalescer == nil:
	case !mayWait || bytes > c.coalescer.CoalesceLimit():
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

// uncork sends all that is held back. The mutex is held.
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
