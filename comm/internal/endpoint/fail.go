package endpoint

import (
	"errors"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
)

// Fail fails the communicator because of err, and tells the other members: the failure that err wraps, or else that this rank has given
// up. Only the first failure counts.
func (c *Communicator) Fail(err error) {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	if !ok {
		f = &diagnosis.Failure{Kind: diagnosis.Aborted, Rank: c.ep.rank, Text: err.Error(), Err: err}
	}
	in := c.lock()
	defer in.unlock()
	in.fail(f, -1)
}

// RevokeTimeout is how long a rank waits for Revoke after it has lost a peer.
const RevokeTimeout = time.Second

// Revoke fails all communicators because of f, including those that are opened later. It does not tell the other
// members: their agents do. It sends nothing more to ranks that are connected, but their streams stay until Close: a
// rank that does not know yet that the round is over would take the end of its stream for the death of this rank.
// Only the first call counts.
func (e *Endpoint) Revoke(f *diagnosis.Failure) {
	in := e.lock()
	defer in.unlock()
	if e.revoked != nil {
		return
	}
	e.revoked = f
	close(e.revoking)
	for _, p := range e.peers {
		in.abandonWrites(p, f)
	}
	for _, c := range e.comms {
		c.stop(f)
	}
}

// abandonWrites drops what is to be written to p. Sends of communicators that have been closed end with f; stop ends
// those of the others.
func (e *state) abandonWrites(p *peer, f *diagnosis.Failure) {
	p.outputClosed = p.state == stateUp
	for _, dropped := range p.out.Drop() {
		dropped.CloseSent()
		if op := dropped.Op; op != nil && op.comm.closed {
			op.comm.endTaken(op, f)
		}
	}
}

// NotRevocable tells the endpoint that nobody will call Revoke.
func (e *Endpoint) NotRevocable() {
	in := e.lock()
	defer in.unlock()
	select {
	case <-e.final:
	default:
		close(e.final)
	}
}

// Abort is Fail. If the communicator has failed already, Abort notifies all members of that failure, even if another rank has found it.
func (c *Communicator) Abort(f *diagnosis.Failure) {
	in := c.lock()
	defer in.unlock()
	if c.err != nil && c.err.Kind != diagnosis.Revoked && !c.closed && c.allReached == nil {
		in.notifyAll(-1)
	}
	in.fail(f, -1)
}

// fail ends every operation with f, and notifies the other members. from is the rank that has notified this one, or -1 if this rank has found
// f.
func (c *communicator) fail(f *diagnosis.Failure, from int) {
	if c.stop(f) {
		c.notifyAll(from)
		c.ep.noteCause(f)
	}
}

// stop ends every operation with f, unless the communicator has failed or been closed. It reports whether it has done so.
func (c *communicator) stop(f *diagnosis.Failure) bool {
	if c.err != nil || c.closed {
		return false
	}
	c.err, c.failed = f, time.Now()
	c.unusable.Store(true)
	c.cancel()
	for _, b := range c.backends {
		b.Interrupt()
	}
	c.queues.CancelAll()
	for _, r := range c.members {
		c.ep.peers[r].out.ReleaseFunc(func(op *operation) bool { return op != nil && op.comm == c })
	}
	for _, op := range slices.Clone(c.ops) {
		c.endTaken(op, f)
	}
	return true
}

// lose ends the operations that need rank, which is gone because of f.
func (c *communicator) lose(rank int, f *diagnosis.Failure) {
	needed := false
	for _, op := range slices.Clone(c.ops) {
		switch {
		case op.peer != rank && op.source != rank:
			needed = needed || op.peer == matching.AnySource && op.source < 0 // rank might have been the one
		case op.hasHappened():
		case op.send && c.ep.peers[rank].state == stateUp && c.ep.peers[rank].out.IsWriting(op): // the rest will follow
		default:
			c.end(op, op.without(f))
			needed = true
		}
	}
	if needed {
		c.failBy(f)
	}
	c.endOrphans()
}

// failBy fails the communicator because of f, the failure of a rank that an operation needs. If that rank has left in good order, only
// the operations that need it fail.
func (c *communicator) failBy(f *diagnosis.Failure) {
	if f.Kind == diagnosis.Closed {
		c.ep.noteCause(f)
	} else {
		c.fail(f, -1)
	}
}

// end ends op with f, and takes it out of every queue that it may be in.
func (c *communicator) end(op *operation, f error) {
	c.queues.Cancel(op)
	if op.send {
		c.ep.peers[op.peer].out.Release(op)
	}
	c.endTaken(op, f)
}

// endTaken is end for an operation that is in no queue of messages or frames any more.
func (c *communicator) endTaken(op *operation, f error) {
	switch {
	case op.send:
		delete(c.ep.sends, op.id)
	case op.source >= 0:
		delete(c.ep.peers[op.source].inbound, op.id)
		c.ep.peers[op.source].in.release(op)
	}
	op.finish(f)
}

// endOrphans ends receives from any source once every other member has gone.
func (c *communicator) endOrphans() {
	var last *diagnosis.Failure
	for _, r := range c.members {
		if f := c.gone(r); f != nil {
			last = f
		} else if r != c.ep.rank {
			return
		}
	}
	if last == nil { // a group of one: its member may still send to itself
		return
	}
	for _, op := range slices.Clone(c.ops) {
		if op.peer == matching.AnySource && op.source < 0 {
			c.end(op, op.without(last))
		}
	}
}
