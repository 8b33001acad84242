package endpoint

import (
	"context"
	"errors"
	"slices"
	"time"
)

// AnySource and AnyTag match every source and every tag in Lane.Recv.
const (
	AnySource = -1
	AnyTag    = -1
)

// A Call is what a rank asked for: an operation and its arguments, in numbers that mean the same on every rank.
// It travels in every frame of a collective, so that ranks whose calls differ find out at the first frame.
type Call struct {
	Op     uint8  // which operation
	Type   uint8  // element type
	Reduce uint8  // reduction
	Root   int32  // root rank, or 0
	Count  uint64 // elements, where all ranks give as many
	Detail uint32 // a checksum of what else they agree on, or 0
}

// An Op is one send or receive under way.
type Op struct {
	lane  *Lane
	send  bool
	probe bool // a receive that leaves the message where it is
	peer  int  // world rank, or AnySource
	tag   int32
	seq   uint64
	call  Call
	buf   []byte
	limit int         // RecvNew: how long buf may become
	over  func() bool // Await: whether it has happened

	number uint64 // of a send, receive or probe among the lane's; else 0

	// Guarded by the endpoint's mutex until done is closed, then constant.
	id     uint64 // rendezvous sends: key in Endpoint.sends
	held   bool   // the reader or a writer is using buf
	source int    // receives: who sent
	gotTag int32  // receives: its tag
	n      int    // receives: bytes of the message
	err    error
	done   chan struct{}
}

// Done is closed when the operation has ended and its buffer is the caller's again.
func (op *Op) Done() <-chan struct{} { return op.done }

// Err is the operation's result once Done is closed.
func (op *Op) Err() error { return op.err }

// Received tells, after a successful receive, the sender's world rank, the tag and the bytes received.
func (op *Op) Received() (source, tag, bytes int) { return op.source, int(op.gotTag), op.n }

// Message is, after a successful receive, what has been received.
func (op *Op) Message() []byte { return op.buf[:op.n] }

// Number is that of a send, receive or probe among those of its lane, from 1.
func (op *Op) Number() uint64 { return op.number }

// Type is, after a successful probe, the element type of the message.
func (op *Op) Type() uint8 { return op.call.Type }

// Wait waits for the operation until ctx ends or timeout has passed (0: no limit). A receive that nothing has
// matched yet is then withdrawn and the group goes on; anything else leaves the group's traffic in an unknown
// state, so the lane fails for all its members. A wait that lasts asks the peer why.
func (op *Op) Wait(ctx context.Context, timeout time.Duration) error {
	select {
	case <-op.done:
		return op.err
	default:
	}
	begun := time.Now()
	alarm := time.NewTimer(min(firstPause, longestPause(timeout)))
	defer alarm.Stop()
	var s *stall
	defer func() { s.close() }()
	for {
		select {
		case <-op.done:
		case <-ctx.Done():
			op.cancel(&Failure{Kind: Aborted, Rank: op.lane.ep.rank, Text: ctx.Err().Error(), Err: ctx.Err()})
			<-op.done
		case <-alarm.C:
			if s == nil {
				s = op.stall(begun, timeout)
			}
			if pause := s.ask(); pause > 0 {
				alarm.Reset(pause)
				continue
			}
			op.cancel(s.verdict())
			<-op.done
		}
		return op.err
	}
}

// ErrTimeout is wrapped by errors of operations that took longer than the group's timeout.
var ErrTimeout = errors.New("timed out")

func (op *Op) cancel(f *Failure) {
	e := op.lane.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	if op.finished() {
		return
	}
	if op.seq == 0 && op.withdraw(f) {
		return
	}
	if f.Rank == AnySource {
		f.Rank = op.source
	}
	op.lane.fail(f, -1)
	if !op.finished() && op.err == nil { // the lane has been closed, or had failed before
		op.lane.detach(op)
		op.end(f)
	}
}

// Withdraw takes back a receive or probe that nothing has matched, and says whether it did.
func (op *Op) Withdraw() bool {
	op.lane.ep.mu.Lock()
	defer op.lane.ep.mu.Unlock()
	return op.withdraw(nil)
}

func (op *Op) withdraw(err error) bool {
	l := op.lane
	i := slices.Index(l.posted, op)
	if i < 0 {
		return false
	}
	l.posted = slices.Delete(l.posted, i, i+1)
	op.finish(err)
	return true
}

func (op *Op) finished() bool {
	select {
	case <-op.done:
		return true
	default:
		return false
	}
}

// finish ends the operation. The endpoint's mutex is held, and nobody holds op.buf.
func (op *Op) finish(err error) {
	delete(op.lane.ops, op)
	if op.err = err; err == nil {
		op.lane.moved(op)
	}
	op.lane.transfers.end(op.number, err)
	close(op.done)
}

// release ends the reader's or writer's use of op.buf, all of which has been moved, and with it the operation. It has
// succeeded even if the lane has failed or the peer has gone in the meantime: a peer may well go once it has what it
// came for. The mutex is held.
func (op *Op) release() {
	op.held = false
	op.finish(nil)
}

// abandoned ends the operation if somebody has given it up while its buffer was in use, and says so. The mutex is held.
func (op *Op) abandoned() bool {
	if op.err == nil {
		return false
	}
	op.held = false
	op.finish(op.err)
	return true
}
