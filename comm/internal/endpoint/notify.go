package endpoint

import (
	"bytes"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

// The rank that finds a failure notifies all members, also those to which it is not connected: they may come to wait for ranks that have
// ended by then because of the failure. A rank that has been notified passes it on to members that are connected, or connect later.

// mostReaching is to how many members a communicator connects at the same time to notify them: all its members may find a failure at once.
const mostReaching = 16

// notifyAll notifies the other members of the communicator's failure. from is as in fail.
func (c *communicator) notifyAll(from int) {
	if from >= 0 {
		c.notified[from] = nil
	}
	at := slices.Index(c.members, c.ep.rank)
	for i := range c.members { // every rank begins with other ones
		r := c.members[(at+i)%len(c.members)]
		switch p := c.ep.peers[r]; {
		case r == c.ep.rank:
		case p.state == stateUp:
			c.notify(r)
		case p.state == stateIdle && from < 0:
			c.unreached = append(c.unreached, r)
		}
	}
	if len(c.unreached) > 0 {
		c.allReached = make(chan struct{})
	}
	c.reachMore()
}

// reachMore connects to members that have to be notified.
func (c *communicator) reachMore() {
	for len(c.unreached) > 0 && len(c.reaching) < mostReaching {
		r := c.unreached[0]
		c.unreached = c.unreached[1:]
		if p := c.ep.peers[r]; p.state == stateIdle && !p.unreachable {
			c.reaching = append(c.reaching, r)
			c.ep.open(p)
		}
	}
	if len(c.reaching) == 0 && c.allReached != nil {
		close(c.allReached)
		c.allReached = nil
	}
}

// resolved takes in that p is connected, or cannot be reached.
func (e *state) resolved(p *peer) {
	for _, c := range e.comms {
		if i := slices.Index(c.reaching, p.rank); i >= 0 {
			c.reaching = slices.Delete(c.reaching, i, i+1)
			c.reachMore()
		}
	}
}

// notify sends the communicator's failure to rank, once, unless the round is over: rank learns that from its own agent, perhaps later, and
// would take it for an abort.
func (c *communicator) notify(rank int) {
	if _, ok := c.notified[rank]; ok || c.err.Kind == diagnosis.Revoked {
		return
	}
	if c.doc == nil {
		c.doc = c.err.Encode(c.ep.rank, wire.FailureLimit)
	}
	c.notified[rank] = c.ep.sendFailure(c.ep.peers[rank], wire.Abort, c.id, c.doc)
}

// receiveAbort takes in that the communicator of h.Context has failed, as p says in doc.
func (e *state) receiveAbort(p *peer, h wire.Header, doc []byte) {
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

// sendFailure sends doc to p. doc says why the communicator of that context has failed, or why another operation of
// this rank has. The channel is closed when doc has been written, or never will be.
func (e *state) sendFailure(p *peer, k wire.Kind, context uint64, doc []byte) chan struct{} {
	sent := make(chan struct{})
	e.enqueue(p, frame{Header: wire.Header{Kind: k, Context: context, Size: uint64(len(doc))}, Payload: doc, Sent: sent})
	return sent
}

// AwaitNotified waits until this rank has sent the communicator's failure to the members that it notifies, and the
// cause to all ranks to which it is connected: otherwise a program that ends because of an error would take the reason
// with it. It waits at most until the failure is limit old.
func (c *Communicator) AwaitNotified(limit time.Duration) {
	in := c.lock()
	e := in.ep
	since, allReached := e.cause.At, c.allReached
	if c.failed.After(since) {
		since = c.failed
	}
	in.unlock()
	if allReached != nil {
		e.api().waitAll([]chan struct{}{allReached}, limit-time.Since(since))
	}
	in = c.lock()
	unwritten := slices.Clone(e.causeSent)
	for _, sent := range c.notified {
		if sent != nil {
			unwritten = append(unwritten, sent)
		}
	}
	in.unlock()
	e.api().waitAll(unwritten, limit-time.Since(since))
}

// noteCause records that an operation of this rank has failed because of f, and sends that to the others. A failure soon after is taken for
// its consequence, and is not sent.
func (e *state) noteCause(f *diagnosis.Failure) {
	now := time.Now()
	if f.Rank == e.rank || f.Rank == matching.AnySource || e.closed || e.cause.IsRecent(now) {
		return
	}
	e.cause, e.causeDoc, e.causeSent = diagnosis.Cause{Failure: f, At: now}, f.Encode(e.rank, wire.FailureLimit), nil
	for _, p := range e.peers {
		if p.state == stateUp {
			e.sendCause(p)
		}
	}
}

// sendCause tells p why an operation of this rank has failed lately, if one has.
func (e *state) sendCause(p *peer) {
	if e.cause.IsRecent(time.Now()) {
		e.causeSent = append(e.causeSent, e.sendFailure(p, wire.Cause, 0, e.causeDoc))
	}
}

// receiveCause takes in why an operation of p's has failed.
func (e *state) receiveCause(p *peer, f *diagnosis.Failure) {
	if f.Rank != p.rank {
		p.cause = diagnosis.Cause{Failure: f, At: time.Now()}
	}
}
