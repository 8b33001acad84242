package endpoint

import (
	"errors"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
)

// Fail fails the lane with f and tells the other members. Only the first failure counts.
func (l *Lane) Fail(f *diagnosis.Failure) {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.fail(f, -1)
}

// Abort is Fail, and connects to the members that are not connected yet to tell them as well.
func (l *Lane) Abort(f *diagnosis.Failure) {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	l.fail(f, -1)
	if l.err == nil { // closed
		return
	}
	for _, r := range l.members {
		if r != e.rank {
			e.want(e.peers[r])
			l.tell(r)
		}
	}
}

// fail ends every operation with f and tells all connected members except the one that told us. The mutex is held.
func (l *Lane) fail(f *diagnosis.Failure, except int) {
	if l.err != nil || l.closed {
		return
	}
	l.err, l.failed = f, time.Now()
	l.over.Store(true)
	l.endAll(f)
	if except >= 0 {
		l.told[except] = nil
	}
	for _, r := range l.members {
		if l.ep.peers[r].state == stateUp {
			l.tell(r)
		}
	}
	l.ep.noteCause(f)
}

// without ends the operations that need rank, which is gone because of f. The mutex is held.
func (l *Lane) without(rank int, f *diagnosis.Failure) {
	needed := false
	for i := len(l.ops) - 1; i >= 0; i-- { // ending one puts the last in its place
		op := l.ops[i]
		switch {
		case op.peer != rank && op.source != rank:
			needed = needed || op.peer == AnySource && op.source < 0 // rank might have been the one
		case op.isOver():
		case op.flying:
			if op.err == nil {
				op.err = f // unless its writer gets it through
			}
		case op.send && l.ep.peers[rank].state == stateUp && l.ep.peers[rank].out.IsWriting(op): // the rest will follow
		default:
			l.detach(op)
			op.finish(f)
			needed = true
		}
	}
	if needed {
		l.failBy(f)
	}
	l.endDeserted()
}

// failBy fails the lane because somebody needs the rank that is gone because of f; if it has left in good order, that is
// the matter of whoever needs it. The mutex is held.
func (l *Lane) failBy(f *diagnosis.Failure) {
	if f.Kind == diagnosis.Left {
		l.ep.noteCause(f)
	} else {
		l.fail(f, f.Rank)
	}
}

// tell sends the lane's failure to rank, once. The mutex is held.
func (l *Lane) tell(rank int) {
	if _, ok := l.told[rank]; ok {
		return
	}
	l.told[rank] = l.ep.sendFailure(l.ep.peers[rank], wire.Abort, l.id, l.err)
}

// An earlyFailure is that of a lane that this rank has not opened yet.
type earlyFailure struct {
	failure *diagnosis.Failure
	source  int // who has told
}

// aborted takes in that lane id has failed, as p says. The mutex is held.
func (e *Endpoint) aborted(p *peer, id uint64, f *diagnosis.Failure) {
	l := e.lanes[id]
	_, known := e.earlyFailures[id]
	switch {
	case l != nil:
		l.fail(f, p.rank)
	case e.hasRetired(id), known, p.earlyFailures == retiredLanes:
	default:
		p.earlyFailures++
		e.earlyFailures[id] = earlyFailure{f, p.rank}
	}
}

// sendFailure tells p why the lane of that number has failed, or another operation of this rank. What it returns is closed when that
// has been sent, or never will be. The mutex is held.
func (e *Endpoint) sendFailure(p *peer, k wire.Kind, lane uint64, f *diagnosis.Failure) chan struct{} {
	sent, doc := make(chan struct{}), f.Encode(e.rank, wire.FailureLimit)
	e.enqueue(p, frame{Header: wire.Header{Kind: k, Context: lane, Size: uint64(len(doc))}, Payload: doc, Sent: sent})
	return sent
}

// Settle waits until the members know of the lane's failure, and other ranks of its cause, as far as they are connected and at most
// until it is limit old: a program that ends because of an error must not take the reason with it.
func (l *Lane) Settle(limit time.Duration) {
	e := l.ep
	e.mu.Lock()
	news, since := slices.Clone(e.causeSent), e.cause.At
	for _, sent := range l.told {
		if sent != nil {
			news = append(news, sent)
		}
	}
	if l.failed.After(since) {
		since = l.failed
	}
	e.mu.Unlock()
	waitAll(news, limit-time.Since(since))
}

// detach takes op out of every queue that it may be in. The mutex is held.
func (l *Lane) detach(op *Op) {
	e := l.ep
	l.queues.Cancel(op)
	switch {
	case op.send:
		delete(e.sends, op.id)
		e.peers[op.peer].out.Release(op)
	case op.source >= 0:
		delete(e.peers[op.source].inbound, op.id)
		e.peers[op.source].in.release(op)
	}
}

// end ends op, whatever it is in, with f: at once, or within a second if it is a send that the writer of a net.Conn may
// have got through. The mutex is held.
func (l *Lane) end(op *Op, f error) {
	if !op.flying {
		l.detach(op)
		op.finish(f)
		return
	}
	if op.err != nil {
		return
	}
	op.err, op.kept = f, true
	time.AfterFunc(time.Second, func() {
		l.ep.mu.Lock()
		defer l.ep.mu.Unlock()
		if op.flying {
			op.flying = false
			l.end(op, f)
		}
	})
}

// endAll ends all operations with f. The mutex is held.
func (l *Lane) endAll(f error) {
	for i := len(l.ops) - 1; i >= 0; i-- { // ending one puts the last in its place
		l.end(l.ops[i], f)
	}
}

// endDeserted ends receives from any source once every other member has gone. The mutex is held.
func (l *Lane) endDeserted() {
	var last *diagnosis.Failure
	for _, r := range l.members {
		if f := l.gone(r); f != nil {
			last = f
		} else if r != l.ep.rank {
			return
		}
	}
	if last == nil { // a group of one: its member may still send to itself
		return
	}
	for _, op := range l.queues.PostedFromAny() {
		l.end(op, last)
	}
}

// AsFailure is err as the other members are told of it: the failure that it wraps, or else that this rank has given up.
func (l *Lane) AsFailure(err error) *diagnosis.Failure {
	if f, ok := errors.AsType[*diagnosis.Failure](err); ok {
		return f
	}
	return &diagnosis.Failure{Kind: diagnosis.Aborted, Rank: l.ep.rank, Text: err.Error(), Err: err}
}
