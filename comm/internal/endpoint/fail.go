package endpoint

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

// Fail fails the communicator because of err, and tells the other members: the failure that err wraps, or else that this rank has given
// up. Only the first failure counts.
func (c *Communicator) Fail(err error) {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	if !ok {
		f = &diagnosis.Failure{Kind: diagnosis.Aborted, Rank: c.ep.rank, Text: err.Error(), Err: err}
	}
	c.ep.mu.Lock()
	defer c.ep.mu.Unlock()
	c.fail(f, -1)
}

// RevokeTimeout is how long a rank waits for Revoke after it has lost a peer.
const RevokeTimeout = time.Second

// Revoke fails all communicators because of f, including those that are opened later. It does not tell the other members: their agents do.
// Only the first call counts.
func (e *Endpoint) Revoke(f *diagnosis.Failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.revoked != nil {
		return
	}
	e.revoked = f
	close(e.revoking)
	e.abandonWrites(f)
	for _, c := range e.comms {
		c.stop(f)
	}
	for _, p := range e.peers {
		e.sendRoundEnd(p)
	}
}

// NotRevocable tells the endpoint that nobody will call Revoke.
func (e *Endpoint) NotRevocable() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.final:
	default:
		close(e.final)
	}
}

// fail ends every operation with f and tells the other members, except the one that told us. If this rank has found f, it connects to the
// members that are not connected: they may wait for this rank, which may be gone before they connect. The mutex is held.
func (c *Communicator) fail(f *diagnosis.Failure, except int) {
	if !c.stop(f) {
		return
	}
	if except >= 0 {
		c.notified[except] = nil
	}
	for _, r := range c.members {
		p := c.ep.peers[r]
		switch {
		case r == c.ep.rank:
		case !f.Remote && f.Kind != diagnosis.Revoked:
			c.ep.connect(p)
			c.notify(r)
		case p.state == stateUp:
			c.notify(r)
		}
	}
	c.ep.noteCause(f)
}

// stop ends every operation with f, unless the communicator has failed or been closed. It reports whether it has done so. The mutex is held.
func (c *Communicator) stop(f *diagnosis.Failure) bool {
	if c.err != nil || c.closed {
		return false
	}
	c.err, c.failed = f, time.Now()
	c.unusable.Store(true)
	c.cancel()
	if c.onFailure != nil {
		c.onFailure()
	}
	c.queues.CancelAll()
	for _, r := range c.members {
		c.ep.peers[r].out.ReleaseFunc(func(op *Op) bool { return op != nil && op.comm == c })
	}
	for _, op := range slices.Clone(c.ops) {
		c.endTaken(op, f)
	}
	return true
}

// lose ends the operations that need rank, which is gone because of f. The mutex is held.
func (c *Communicator) lose(rank int, f *diagnosis.Failure) {
	needed := false
	for _, op := range slices.Clone(c.ops) {
		switch {
		case op.peer != rank && op.source != rank:
			needed = needed || op.peer == matching.AnySource && op.source < 0 // rank might have been the one
		case op.hasHappened():
		case op.send && c.ep.peers[rank].state == stateUp && c.ep.peers[rank].out.IsWriting(op): // the rest will follow
		default:
			c.end(op, f)
			needed = true
		}
	}
	if needed {
		c.failBy(f)
	}
	c.endOrphans()
}

// failBy fails the communicator because of f, the failure of a rank that an operation needs. If that rank has left in good order, only
// the operations that need it fail. The mutex is held.
func (c *Communicator) failBy(f *diagnosis.Failure) {
	if f.Kind == diagnosis.Closed {
		c.ep.noteCause(f)
	} else {
		c.fail(f, f.Rank)
	}
}

// notify sends the communicator's failure to rank, once, unless the round is over: rank learns that from its own agent, perhaps later, and
// would take it for an abort. The mutex is held.
func (c *Communicator) notify(rank int) {
	if _, ok := c.notified[rank]; ok || c.err.Kind == diagnosis.Revoked {
		return
	}
	c.notified[rank] = c.ep.sendFailure(c.ep.peers[rank], wire.Abort, c.id, c.err)
}

// receiveAbort takes in that the communicator of h.Context has failed, as p says in doc. The mutex is held.
func (e *Endpoint) receiveAbort(p *peer, h wire.Header, doc []byte) {
	c := e.comms[h.Context]
	switch {
	case c != nil:
		c.fail(diagnosis.DecodeFailure(doc, p.rank, len(e.peers)), p.rank)
	case e.hasRetired(h.Context), p.earlyFailures == mostRetired:
	default:
		p.earlyFailures++
		e.early[h.Context] = append(e.early[h.Context], &matching.Message{Header: h, Source: p.rank, Payload: bytes.Clone(doc)})
	}
}

// sendFailure tells p why the communicator of that context has failed, or another operation of this rank. What it returns is closed when
// that has been sent, or never will be. The mutex is held.
func (e *Endpoint) sendFailure(p *peer, k wire.Kind, context uint64, f *diagnosis.Failure) chan struct{} {
	sent, doc := make(chan struct{}), f.Encode(e.rank, wire.FailureLimit)
	e.enqueue(p, frame{Header: wire.Header{Kind: k, Context: context, Size: uint64(len(doc))}, Payload: doc, Sent: sent})
	return sent
}

// AwaitNotified waits until the members that fail has notified know of the communicator's failure, and connected ranks of its cause, at most
// until the failure is limit old. A program that ends because of an error must not take the reason with it.
func (c *Communicator) AwaitNotified(limit time.Duration) {
	e := c.ep
	e.mu.Lock()
	news, since := slices.Clone(e.causeSent), e.cause.At
	for _, sent := range c.notified {
		if sent != nil {
			news = append(news, sent)
		}
	}
	if c.failed.After(since) {
		since = c.failed
	}
	e.mu.Unlock()
	e.waitAll(news, limit-time.Since(since))
}

// end ends op with f, and takes it out of every queue that it may be in. The mutex is held.
func (c *Communicator) end(op *Op, f error) {
	c.queues.Cancel(op)
	if op.send {
		c.ep.peers[op.peer].out.Release(op)
	}
	c.endTaken(op, f)
}

// endTaken is end for an operation that is in no queue of messages or frames any more.
func (c *Communicator) endTaken(op *Op, f error) {
	switch {
	case op.send:
		delete(c.ep.sends, op.id)
	case op.source >= 0:
		delete(c.ep.peers[op.source].inbound, op.id)
		c.ep.peers[op.source].in.release(op)
	}
	op.finish(f)
}

// endOrphans ends receives from any source once every other member has gone. The mutex is held.
func (c *Communicator) endOrphans() {
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
			c.end(op, last)
		}
	}
}

// noteCause records that an operation of this rank has failed because of f, and sends that to the others. A failure soon after is taken for
// its consequence, and is not sent. The mutex is held.
func (e *Endpoint) noteCause(f *diagnosis.Failure) {
	now := time.Now()
	if f.Rank == e.rank || f.Rank == matching.AnySource || e.closed || e.cause.IsRecent(now) {
		return
	}
	e.cause, e.causeSent = diagnosis.Cause{Failure: f, At: now}, nil
	for _, p := range e.peers {
		if p.state == stateUp {
			e.sendCause(p)
		}
	}
}

// sendCause tells p why an operation of this rank has failed lately, if one has. The mutex is held.
func (e *Endpoint) sendCause(p *peer) {
	if e.cause.IsRecent(time.Now()) {
		e.causeSent = append(e.causeSent, e.sendFailure(p, wire.Cause, 0, e.cause.Failure))
	}
}

// receiveCause takes in why an operation of p's has failed. The mutex is held.
func (e *Endpoint) receiveCause(p *peer, f *diagnosis.Failure) {
	if f.Rank != p.rank {
		p.cause = diagnosis.Cause{Failure: f, At: time.Now()}
	}
}
