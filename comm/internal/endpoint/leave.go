package endpoint

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

const (
	// mostRetired is how many closed communicators are remembered, so that peers that connect later and still need them are told. It is
	// also how many failures of communicators that this rank has not opened yet are kept for one peer.
	mostRetired = 1024
	// mostUnopened is how many groups one peer may have left before this rank has opened them. To make a group takes all its
	// ranks, so an honest peer is ahead by one for each group that groups are made of.
	mostUnopened = 16 << 10
)

// A retired communicator is one that this rank has closed.
type retired struct {
	id     uint64
	last   call.Fingerprint   // its last collective
	failed *diagnosis.Failure // why it had failed before, or nil
	untold []int              // members that do not know yet, because there is no stream to them
}

// Close ends this rank's part in the communicator; operations under way end with ErrClosed. Members that need this rank are told
// that it has left: those that are connected now, the others when they connect.
func (c *Communicator) Close() {
	in := c.lock()
	defer in.unlock()
	if in.closed {
		return
	}
	in.close()
	delete(in.ep.comms, in.id)
	end := retired{id: in.id, last: in.collectives.Last(), failed: in.err}
	for _, r := range in.members {
		switch {
		case r == in.ep.rank || in.gone(r) != nil: // it does not care any more
		case in.ep.peers[r].state == stateUp:
			in.ep.sendLeave(in.ep.peers[r], &end)
		default:
			end.untold = append(end.untold, r)
		}
	}
	for _, m := range in.queues.Clear() {
		if m.Source != in.ep.rank {
			in.ep.discard(in.ep.peers[m.Source], m) // the sender has been told that this rank has left
		}
	}
	if in.ep.retired = append(in.ep.retired, end); len(in.ep.retired) > mostRetired {
		in.ep.retired = slices.Delete(in.ep.retired, 0, 1)
	}
}

// close ends the communicator's operations, except sends whose bytes are queued to be written.
func (c *communicator) close() {
	c.closed = true
	c.unusable.Store(true)
	c.cancel()
	byNumber := func(a, b *operation) int { return cmp.Compare(a.number, b.number) }
	for _, op := range slices.SortedFunc(slices.Values(c.ops), byNumber) {
		if !op.send || c.ep.sends[op.id] == op {
			c.abandon(op, ErrClosed)
		}
	}
}

// abandon ends op with f because this rank has closed the communicator, and records it if nobody has waited for it and it has lost a
// message.
func (c *communicator) abandon(op *operation, f error) {
	switch {
	case !op.started || op.attended:
	case op.send:
		c.abandoned = append(c.abandoned, fmt.Sprintf("%s to rank %d", op.name(), op.peer))
	case op.source >= 0:
		c.abandoned = append(c.abandoned, fmt.Sprintf("%s from rank %d", op.name(), op.source))
	}
	c.end(op, f)
}

// Abandoned returns which operations nobody has waited for, and have lost a message because this rank has closed the communicator.
func (c *Communicator) Abandoned() []string {
	in := c.lock()
	defer in.unlock()
	return c.abandoned
}

// Pending returns the sends and receives of I-forms that have not ended.
func (c *Communicator) Pending() (names []string) {
	in := c.lock()
	defer in.unlock()
	for _, op := range c.ops {
		if op.started {
			names = append(names, op.name())
		}
	}
	return names
}

// sendLeave tells p that this rank has closed a communicator.
func (e *state) sendLeave(p *peer, end *retired) {
	e.enqueue(p, frame{Header: wire.Header{Kind: wire.Leave, Context: end.id, Fingerprint: end.last}})
}

// sendLeaves tells p, which has just connected, of the communicators that this rank has closed before, and why if they had failed.
func (e *state) sendLeaves(p *peer) {
	for i := range e.retired {
		if end := &e.retired[i]; slices.Contains(end.untold, p.rank) {
			end.untold = slices.DeleteFunc(end.untold, func(r int) bool { return r == p.rank })
			if end.failed != nil && end.failed.Kind != diagnosis.Revoked { // as in notify
				e.sendFailure(p, wire.Abort, end.id, end.failed.Encode(e.rank, wire.FailureLimit))
			}
			e.sendLeave(p, end)
		}
	}
}

// hasRetired reports whether this rank has closed the communicator of context id.
func (e *state) hasRetired(id uint64) bool {
	return slices.ContainsFunc(e.retired, func(end retired) bool { return end.id == id })
}

// receiveLeave takes in that p has closed the communicator of h.Context.
func (e *state) receiveLeave(p *peer, h wire.Header) error {
	c := e.comms[h.Context]
	switch {
	case c != nil:
		c.leave(p.rank, h.Fingerprint)
	case e.closed || e.hasRetired(h.Context):
	default:
		if p.earlyLeaves++; p.earlyLeaves > mostUnopened {
			return fmt.Errorf("left %d groups that it has not made with this rank, limit %d", p.earlyLeaves, mostUnopened)
		}
		e.early[h.Context] = append(e.early[h.Context], matching.NewMessage(h, p.rank))
	}
	return nil
}

// leave records that rank has closed the communicator after collective last, and ends the operations that need it. As with a
// rank that has left the world in good order, the others go on, unless its calls differ from this rank's.
func (c *communicator) leave(rank int, last call.Fingerprint) {
	_ = c.compare(rank, last) // the communicator has failed with it
	if c.closedBy == nil {
		c.closedBy, c.leftAt = map[int]*diagnosis.Failure{}, map[int]call.Fingerprint{}
	}
	if last.Seq > c.collectives.Last().Seq {
		c.leftAt[rank] = last
	}
	f := &diagnosis.Failure{Kind: diagnosis.Closed, Rank: rank, Text: "has left (closed the group)"}
	f = c.ep.peers[rank].cause.RootOf(f, time.Now())
	c.closedBy[rank] = f
	c.lose(rank, f)
}

// Gone is why nothing more comes from rank in this communicator, or nil.
func (c *Communicator) Gone(rank int) *diagnosis.Failure {
	in := c.lock()
	defer in.unlock()
	return in.gone(rank)
}

// gone is why nothing more comes from rank in this communicator, or nil.
func (c *communicator) gone(rank int) *diagnosis.Failure {
	if f := c.closedBy[rank]; f != nil {
		return f
	}
	if p := c.ep.peers[rank]; p.state == stateGone {
		return p.failure
	}
	return nil
}

// sendGoodbye tells p that this rank leaves the world. Nothing is sent to p after that, and p ends the stream when it has read all:
// a stream that this side ended while p still sends would be reset, and what is on its way to p be lost. What it returns is closed
// when it has been written, or never will be.
func (e *state) sendGoodbye(p *peer) (sent chan struct{}) {
	if p.goodbye == nil {
		p.goodbye = make(chan struct{})
		e.enqueue(p, frame{Header: wire.Header{Kind: wire.Goodbye}, Sent: p.goodbye})
		p.outputClosed = true
	}
	return p.goodbye
}
