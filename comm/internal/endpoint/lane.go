package endpoint

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/flight"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

// A Lane is the traffic of one group: its own space of tags and sequence numbers, and its own failure.
type Lane struct {
	ep      *Endpoint
	id      uint64
	members []int // world ranks

	// Guarded by ep.mu.
	queues    matching.Queues[*Op]
	ops       []*Op                    // every operation that has not ended, in no order
	leftAt    map[int]call.Fingerprint // the last collective of members that have closed the lane, if this rank has not come so far
	askers    map[int]uint64           // members that have asked while this rank waits, and about which collective
	monitor   *monitor                 // of this rank
	monitored uint64                   // the collective that another member monitors
	err       *diagnosis.Failure
	failed    time.Time // since when err
	closed    bool
	told      map[int]chan struct{}      // who has been told of err; closed when that has been written
	left      map[int]*diagnosis.Failure // members that have closed the lane

	collectives, transfers flight.Recorder
	refused                refusal // the last one

	trace flight.Trace
	over  atomic.Bool // failed or closed
}

// A refusal is why a rank did not make a call that was wrong in itself.
type refusal struct {
	text string
	at   time.Time
}

// A TruncateError is the error of a receive whose buffer is shorter than the message. The message is lost; the
// group goes on.
type TruncateError struct {
	Source    int // world rank
	Got, Room int // bytes of the message, bytes of the buffer
}

func (e *TruncateError) Error() string {
	return fmt.Sprintf("message of %d bytes from rank %d does not fit into %d bytes", e.Got, e.Source, e.Room)
}

// Send starts sending buf to dst. It does not block. seq is 0 for point to point; tag is then the caller's, else 0.
func (l *Lane) Send(dst int, tag int, seq uint64, call call.Call, buf []byte) *Op {
	op := newOp(dst, tag, call)
	op.seq, op.buf, op.whole = seq, buf, len(buf)
	return l.send(op)
}

// SendPiece is Send of a piece of a collective's message, which has so many bytes on the whole. Pieces of at most
// wire.LongestPiece bytes mostly travel at once.
func (l *Lane) SendPiece(dst int, seq uint64, call call.Call, buf []byte, whole int) *Op {
	op := newOp(dst, 0, call)
	op.seq, op.buf, op.whole = seq, buf, whole
	return l.send(op)
}

// TravelsAtOnce says whether a piece of n bytes, not too long, that is sent to dst now need not wait until it is asked for.
func (l *Lane) TravelsAtOnce(dst, n int) bool {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	return l.ep.peers[dst].sent.Fits(&wire.Header{Size: uint64(n), Fingerprint: call.Fingerprint{Seq: 1}})
}

func (l *Lane) send(op *Op) *Op {
	e, dst, buf := l.ep, op.peer, op.buf
	e.mu.Lock()
	defer e.mu.Unlock()
	op.send = true
	l.addOp(op)
	h := op.envelope(wire.Eager)
	p := e.peers[dst]
	gone := l.gone(dst)
	switch err := l.usable(); {
	case err != nil:
		op.finish(err)
		return op
	case dst == e.rank:
		m := matching.NewMessage(h, dst)
		copy(m.Payload, buf)
		l.arrive(m)
		op.finish(nil)
		return op
	case gone != nil:
		op.finish(gone)
		l.failBy(gone)
		return op
	}
	e.want(p)
	if p.sent.Fits(&h) {
		p.sent.Use(len(buf))
		e.enqueue(p, frame{Header: h, Payload: buf, Op: op})
	} else {
		e.announce(p, op)
	}
	return op
}

// envelope is the header of what op sends.
func (op *Op) envelope(k wire.Kind) wire.Header {
	return wire.Header{
		Kind: k, Tag: op.tag, Context: op.lane.id, Size: uint64(len(op.buf)), ID: op.id, Whole: uint64(op.whole),
		Fingerprint: call.Fingerprint{Seq: op.seq, Call: op.call, Before: op.lane.collectives.Last().Before},
	}
}

// Recv starts receiving a message of at most len(buf) bytes from src (or AnySource) with tag (or AnyTag).
func (l *Lane) Recv(src int, tag int, seq uint64, call call.Call, buf []byte) *Op {
	op := newOp(src, tag, call)
	op.seq, op.buf, op.whole = seq, buf, len(buf)
	return l.recv(op)
}

// RecvPiece is Recv of what SendPiece sends.
func (l *Lane) RecvPiece(src int, seq uint64, call call.Call, buf []byte, whole int) *Op {
	op := newOp(src, 0, call)
	op.seq, op.buf, op.whole = seq, buf, whole
	return l.recv(op)
}

// RecvNew is Recv of a point-to-point message into memory that is made for it when it is there, at most limit bytes.
func (l *Lane) RecvNew(src int, tag int, call call.Call, limit int) *Op {
	op := newOp(src, tag, call)
	op.limit = limit
	return l.recv(op)
}

func (l *Lane) recv(op *Op) *Op {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.addOp(op)
	if m, place := l.queues.Message(op.wants(), l.err != nil); m != nil { // what has arrived whole is delivered even after a failure
		l.queues.TakeMessage(place)
		l.deliver(op, m)
		return op
	}
	l.post(op)
	return op
}

// Probe starts waiting for a message that a Recv from src with tag would get. The message stays where it is.
func (l *Lane) Probe(src, tag int, call call.Call) *Op {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	op := newOp(src, tag, call)
	op.probe = true
	l.addOp(op)
	if m, _ := l.queues.Message(op.wants(), l.err != nil); m != nil {
		op.see(m)
		return op
	}
	l.post(op)
	return op
}

// post makes op, a receive or probe that nothing matches yet, wait for a message. The mutex is held.
func (l *Lane) post(op *Op) {
	e := l.ep
	if err := l.usable(); err != nil {
		op.finish(err)
		return
	}
	if op.peer == AnySource {
		for _, r := range l.members {
			e.want(e.peers[r])
		}
	} else if f := l.gone(op.peer); f != nil {
		if op.isOver() {
			return
		}
		op.finish(f)
		l.failBy(f)
		return
	} else {
		e.want(e.peers[op.peer])
	}
	l.queues.Post(op.wants(), op.probe, op)
	l.endDeserted()
}

// Refused says that this rank does not make a call because of what text says, for those who wait for it.
func (l *Lane) Refused(text string) {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.refused = refusal{strings.ToValidUTF8(text[:min(len(text), diagnosis.MaxText/2)], ""), time.Now()}
}

// Err is the lane's failure, or ErrClosed, or nil.
func (l *Lane) Err() error {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	return l.usable()
}

func (l *Lane) usable() error {
	switch {
	case l.closed:
		return ErrClosed
	case l.err != nil:
		return l.err
	}
	return nil
}

func newOp(peer, tag int, call call.Call) *Op {
	op := ops.Get().(*Op)
	op.peer, op.tag, op.call, op.source = peer, int32(tag), call, -1
	return op
}

func (l *Lane) addOp(op *Op) {
	op.lane, op.at = l, len(l.ops)
	l.ops = append(l.ops, op)
	if op.seq == 0 {
		op.number = l.transfers.Next()
		if !op.probe { // who probes does so all the time
			l.transfers.Begin(call.Fingerprint{Seq: op.number, Call: op.call}, op.peer, int(op.tag))
		}
	}
}

func (l *Lane) removeOp(op *Op) {
	last := len(l.ops) - 1
	l.ops[op.at] = l.ops[last]
	l.ops[op.at].at = op.at
	l.ops[last] = nil
	l.ops = l.ops[:last]
}

// Usable says whether the lane has neither failed nor been closed.
func (l *Lane) Usable() bool { return !l.over.Load() }
