package endpoint

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/matching"
)

// Recv starts receiving a message of at most len(buf) bytes from src (or AnySource) with tag (or AnyTag).
func (c *Communicator) Recv(src int, tag int, seq uint64, call call.Call, buf []byte) *Op {
	return c.recv(newOp(src, tag, seq, call, buf, len(buf)))
}

// RecvChunk is Recv of what SendChunk sends.
func (c *Communicator) RecvChunk(src int, seq uint64, call call.Call, buf []byte, whole int) *Op {
	return c.recv(newOp(src, 0, seq, call, buf, whole))
}

// RecvNew is Recv of a point-to-point message of at most limit bytes. Memory for it is allocated when its length is
// known.
func (c *Communicator) RecvNew(src int, tag int, call call.Call, limit int) *Op {
	op := newOp(src, tag, 0, call, nil, 0)
	op.limit = limit
	return c.recv(op)
}

// Probe starts waiting for a message that a Recv from src with tag would get. The message stays where it is.
func (c *Communicator) Probe(src, tag int, call call.Call) *Op {
	op := newOp(src, tag, 0, call, nil, 0)
	op.probe = true
	return c.recv(op)
}

func (c *Communicator) recv(op *operation) *Op {
	in := c.lock()
	defer in.unlock()
	in.recv(op)
	return (*Op)(op)
}

func (c *communicator) recv(op *operation) {
	c.addOp(op)
	m, place := c.queues.Message(op.wants(), c.err != nil) // what has arrived whole is delivered even after a failure
	switch {
	case m == nil:
		c.post(op)
	case op.probe:
		op.probed(m)
	default:
		c.queues.TakeMessage(place)
		c.deliver(op, m)
	}
}

// post makes op wait for its peer: a receive or probe that nothing matches yet, or what Await awaits.
func (c *communicator) post(op *operation) {
	e := c.ep
	if err := c.usable(); err != nil {
		op.finish(err)
		return
	}
	if op.peer == matching.AnySource {
		for _, r := range c.members {
			e.connect(e.peers[r])
		}
	} else if f := c.gone(op.peer); f != nil {
		if op.hasHappened() {
			return
		}
		op.finish(op.without(f))
		c.failBy(f)
		return
	} else {
		e.connect(e.peers[op.peer])
	}
	if op.happened == nil {
		c.queues.Post(op.wants(), op.probe, op)
		c.endOrphans()
	}
}

// Await starts waiting for something that rank src does in collective seq without a message, such as a store in shared memory. happened
// reports whether it has done so, and may be called at any time. The caller, who sees it happen, ends the wait by Withdraw. If src dies, or
// closes the group, or is in another call, the wait ends with an error.
func (c *Communicator) Await(src int, seq uint64, call call.Call, happened func() bool) *Op {
	in := c.lock()
	defer in.unlock()
	_ = in.compareAll() // the wait ends with it
	op := newOp(src, 0, seq, call, nil, 0)
	op.happened = happened
	in.addOp(op)
	in.post(op)
	return (*Op)(op)
}

// hasHappened ends op if what it awaits has happened, and reports whether it has: a rank that is gone may have done its part before.
func (op *operation) hasHappened() bool {
	if op.happened == nil || !op.happened() {
		return false
	}
	op.comm.end(op, nil)
	return true
}
