package endpoint

import (
	"fmt"
	"slices"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

const (
	// retiredLanes is how many closed lanes are remembered, to tell peers that connect later and still need them. Of so many that this
	// rank has not opened it takes in why they have failed.
	retiredLanes = 1024
	// mostUnopened is how many groups one peer may have left before this rank has opened them. To make a group takes all its
	// ranks, so an honest peer is ahead by one for each group that groups are made of.
	mostUnopened = 16 << 10
)

// A retired lane is one that this rank has closed.
type retired struct {
	id     uint64
	last   call.Fingerprint   // its last collective
	failed *diagnosis.Failure // why it had failed before, or nil
	untold []int              // members that do not know yet, because there is no stream to them
}

// Close ends this rank's part in the lane; operations under way end with ErrClosed. Members that need this rank are told
// that it has left: those that are connected now, the others when they connect.
func (l *Lane) Close() {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.closed {
		return
	}
	l.close()
	delete(e.lanes, l.id)
	l.takeOver()
	end := retired{id: l.id, last: l.collectives.Last(), failed: l.err}
	for _, r := range l.members {
		switch {
		case r == e.rank || l.gone(r) != nil: // it does not care any more
		case e.peers[r].state == stateUp:
			e.takeLeave(e.peers[r], &end)
		default:
			end.untold = append(end.untold, r)
		}
	}
	for _, m := range l.queues.Clear() {
		if m.Source != e.rank {
			e.refuse(e.peers[m.Source], m) // which says nothing new to a sender that has been told
		}
	}
	if e.retired = append(e.retired, end); len(e.retired) > retiredLanes {
		e.retired = slices.Delete(e.retired, 0, 1)
	}
}

// close ends the lane's operations, except sends that are queued to be written. The mutex is held.
func (l *Lane) close() {
	l.closed = true
	l.over.Store(true)
	for i := len(l.ops) - 1; i >= 0; i-- {
		if op := l.ops[i]; !op.send || op.id != 0 {
			l.end(op, ErrClosed)
		}
	}
}

// takeLeave tells p that this rank has closed a lane. The mutex is held.
func (e *Endpoint) takeLeave(p *peer, end *retired) {
	e.enqueue(p, frame{Header: wire.Header{Kind: wire.Leave, Context: end.id, Fingerprint: end.last}})
}

// takeLeaves tells p, which has just connected, of the lanes that this rank has closed before, and why if they had failed. The
// mutex is held.
func (e *Endpoint) takeLeaves(p *peer) {
	for i := range e.retired {
		if end := &e.retired[i]; slices.Contains(end.untold, p.rank) {
			end.untold = slices.DeleteFunc(end.untold, func(r int) bool { return r == p.rank })
			if end.failed != nil {
				e.sendFailure(p, wire.Abort, end.id, end.failed)
			}
			e.takeLeave(p, end)
		}
	}
}

// hasRetired says whether this rank has closed lane id. The mutex is held.
func (e *Endpoint) hasRetired(id uint64) bool {
	return slices.ContainsFunc(e.retired, func(end retired) bool { return end.id == id })
}

// left takes in that p has closed lane h.Context. The mutex is held.
func (e *Endpoint) left(p *peer, h wire.Header) error {
	l := e.lanes[h.Context]
	switch {
	case l != nil:
		l.leave(p.rank, h.Fingerprint)
	case e.closed || e.hasRetired(h.Context):
	default:
		if p.earlyLeaves++; p.earlyLeaves > mostUnopened {
			return fmt.Errorf("left %d groups that it has not made with this rank, limit %d", p.earlyLeaves, mostUnopened)
		}
		e.early[h.Context] = append(e.early[h.Context], matching.NewMessage(h, p.rank))
	}
	return nil
}

// leave records that rank has closed the lane after collective last, and ends the operations that need it. Like a rank that has left
// the world in good order, it is the matter of whoever needs it, unless it has made other calls. The mutex is held.
func (l *Lane) leave(rank int, last call.Fingerprint) {
	l.takeOver()
	_ = l.compare(rank, last) // the lane has failed with it
	if l.left == nil {
		l.left, l.leftAt = map[int]*diagnosis.Failure{}, map[int]call.Fingerprint{}
	}
	if last.Seq > l.collectives.Last().Seq {
		l.leftAt[rank] = last
	}
	f := l.ep.peers[rank].rootCause(&diagnosis.Failure{Kind: diagnosis.Left, Rank: rank, Text: "has left (closed the group)"})
	l.left[rank] = f
	l.without(rank, f)
}

// Gone is why nothing more comes from rank in this lane, or nil.
func (l *Lane) Gone(rank int) *diagnosis.Failure {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	return l.gone(rank)
}

// gone is why nothing more comes from rank in this lane, or nil. The mutex is held.
func (l *Lane) gone(rank int) *diagnosis.Failure {
	if f := l.left[rank]; f != nil {
		return f
	}
	if p := l.ep.peers[rank]; p.state == stateGone {
		return p.failure
	}
	return nil
}

// sayGoodbye tells p that this rank leaves the world. Nothing is sent to p after that, and p ends the stream when it has read all:
// a stream that this side ended while p still sends would be reset, and what is on its way to p be lost. What it returns is closed
// when it has been written, or never will be. The mutex is held.
func (e *Endpoint) sayGoodbye(p *peer) (sent chan struct{}) {
	sent = make(chan struct{})
	e.enqueue(p, frame{Header: wire.Header{Kind: wire.Goodbye}, Sent: sent})
	p.dismissed = true
	return sent
}
