package endpoint

import (
	"sync"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/progress"
)

// An Op is one send or receive under way, or a wait for what a peer does without a message.
type Op operation

type operation struct {
	comm     *communicator
	send     bool
	probe    bool // a receive that leaves the message where it is
	peer     int  // world rank, or AnySource
	tag      int32
	seq      uint64
	call     call.Call
	buf      []byte
	whole    int         // collective: bytes of the message of which buf is a chunk
	limit    int         // RecvNew: how long buf may become
	happened func() bool // Await: whether it has happened

	number uint64 // of a send, receive or probe among the communicator's; else 0

	// Guarded by the mutex until ended is set, then constant.
	started  bool   // by Start
	attended bool   // somebody has waited for it since
	at       int    // where it is in communicator.ops
	id       uint64 // of a message that has been announced: the key in state.sends, or in peer.inbound
	source   int    // receives: who sent
	gotTag   int32  // receives: its tag
	n        int    // receives: bytes of the message
	come     int    // receives of announced messages: the bytes of the frames that have begun to come
	err      error

	progress.Request
}

var ops = sync.Pool{New: func() any { return new(operation) }}

// Free lets another operation use op's memory. op has ended, and the caller uses it no more.
func (op *Op) Free() {
	if op.err == nil {
		*op = Op{}
		ops.Put((*operation)(op))
	}
}

// Done is closed when the operation has ended and its buffer is the caller's again.
func (op *Op) Done() <-chan struct{} {
	in := op.lock()
	defer in.unlock()
	in.attended = true
	return in.comm.ep.engine.Done(&in.Request, in.conn())
}

// Start says that op has been started by an I-form, and that nobody waits for it yet.
func (op *Op) Start() {
	in := op.lock()
	defer in.unlock()
	in.started = !in.Ended()
}

// Err is the operation's result once it has ended.
func (op *Op) Err() error { return op.err }

// Received tells, after a successful receive, the sender's world rank, the tag and the bytes received.
func (op *Op) Received() (source, tag, bytes int) { return op.source, int(op.gotTag), op.n }

// Message is, after a successful receive, what has been received.
func (op *Op) Message() []byte { return op.buf[:op.n] }

// Number is that of a send, receive or probe among those of its communicator, from 1.
func (op *Op) Number() uint64 { return op.number }

// Type is, after a successful probe, the element type of the message.
func (op *Op) Type() uint8 { return op.call.Type }

func (op *Op) cancel(f *diagnosis.Failure) {
	in := op.lock()
	defer in.unlock()
	if in.Ended() {
		return
	}
	if in.seq == 0 && in.withdraw(f) {
		in.comm.ep.noteCause(f)
		return
	}
	if f.Rank == matching.AnySource {
		f.Rank = in.source
	}
	in.comm.fail(f, -1)
	if !in.Ended() { // the communicator has been closed, or had failed before
		in.comm.end(in, f)
	}
}

// Withdraw takes back a receive or probe that nothing has matched, or ends what Await awaits. It reports whether it did.
func (op *Op) Withdraw() bool {
	in := op.lock()
	defer in.unlock()
	return in.withdraw(nil)
}

func (op *operation) withdraw(err error) bool {
	if op.Ended() || op.happened == nil && !op.comm.queues.Cancel(op) {
		return false
	}
	op.finish(err)
	return true
}

// finish ends the operation, which is in no queue any more. From then on op is its caller's alone: who sees that it has
// ended may Free it.
func (op *operation) finish(err error) {
	op.comm.removeOp(op)
	op.err = err
	op.comm.record(op)
	op.comm.ep.engine.End(&op.Request)
}

// wants is what op, a receive or a probe, matches.
func (op *operation) wants() matching.Pattern {
	return matching.Pattern{Source: op.peer, Tag: op.tag, Seq: op.seq}
}

func newOp(peer, tag int, seq uint64, call call.Call, buf []byte, whole int) *operation {
	op := ops.Get().(*operation)
	op.peer, op.tag, op.seq, op.call, op.buf, op.whole, op.source = peer, int32(tag), seq, call, buf, whole, -1
	return op
}

func (c *communicator) addOp(op *operation) {
	op.comm, op.at = c, len(c.ops)
	c.ops = append(c.ops, op)
	if op.seq == 0 {
		op.number = c.transfers.Next()
		if !op.probe { // who probes does so all the time
			c.transfers.BeginTransfer(op.number, op.call, op.peer, int(op.tag))
		}
	}
}

func (c *communicator) removeOp(op *operation) {
	last := len(c.ops) - 1
	c.ops[op.at] = c.ops[last]
	c.ops[op.at].at = op.at
	c.ops[last] = nil
	c.ops = c.ops[:last]
}
