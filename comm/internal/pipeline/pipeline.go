// Package pipeline carries out plans: it moves the messages of a plan's steps between ranks, and combines the operands
// that come with those that are there. It is the only place that does both.
//
// Messages travel in chunks, and ahead of the order in which steps take effect. A rank sends a chunk as soon as its
// bytes are final, and posts the receive of a chunk as soon as the bytes in its place are no longer needed. So a chunk
// is combined while the next one is on its way.
//
// If a plan of whole messages cannot deadlock, neither can its pipeline. Before a rank waits, it has sent everything
// that the plan sends before that point. Chunks that it sends earlier than that are eager messages, which do not wait
// for their receiver.
package pipeline

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

const (
	// mostChunks is the most chunks under way in each direction.
	mostChunks = 16
	// mostScratch is the most bytes of chunks that wait in scratch memory to be combined, unless fewestScratch chunks
	// are longer.
	mostScratch, fewestScratch = 4 << 20, 8
	// mostSteps is how many steps ahead a pipeline looks for chunks.
	mostSteps = 8
)

// A Call is the collective that a task belongs to.
type Call struct {
	Seq    uint64 // its number in the group
	Call   call.Call
	Elem   int // bytes of what the plan counts in
	Caller Caller
}

// A Caller makes a call, and says how long it may last.
type Caller interface {
	Context() context.Context
	// Remaining is how long the call may still wait. The time begins with the first call of Remaining.
	Remaining() time.Duration
	// Fail makes the group fail because of err, so that everything under way ends, also in other goroutines.
	Fail(err error)
}

// A Pipeline carries out the plans of a group's collectives, one at a time.
type Pipeline struct {
	ChunkSize int // how many bytes of a message travel at once

	comm    *endpoint.Communicator
	ranks   []int // world ranks of the group
	rank    int   // this rank's in the group
	scratch Scratch

	// Of the task under way:
	call     Call
	task     Task
	inPlace  bool   // what is sent and what is received are the same vector
	chunk    int    // the length of a chunk, in elements
	slots    int    // for so many chunks unmerged has memory
	unmerged []byte // memory for chunks that wait to be combined

	out, in, done cursor // what is to be sent next, received next, merged next
	sent, awaited queue
	waiting       int // chunks in unmerged
	last          int // the index of the next of these
	sentAhead     int // how many more chunks have been sent than merged
	mostAhead     int // the most of these
}

// New returns the pipeline of a group of world ranks, of which this one is number rank.
func New(comm *endpoint.Communicator, ranks []int, rank, chunkSize int) Pipeline {
	return Pipeline{ChunkSize: chunkSize, comm: comm, ranks: ranks, rank: rank}
}

// Run carries out t as a stage of call. If it returns an error, the communicator has failed, and nothing of t is under
// way.
func (pl *Pipeline) Run(call Call, t *Task) error {
	pl.begin(call, t)
	err := pl.run()
	if err != nil {
		call.Caller.Fail(err)
	}
	if ended := pl.End(); err == nil {
		err = ended
	}
	return err
}

// End waits until nothing is under way, and returns the first error. It is called when a task has been carried out, or
// the communicator has failed.
func (pl *Pipeline) End() (err error) {
	for !pl.sent.isEmpty() || !pl.awaited.isEmpty() {
		q := &pl.awaited
		if q.isEmpty() {
			q = &pl.sent
		}
		if ended := pl.wait(q.pop().op); err == nil {
			err = ended
		}
	}
	pl.call, pl.task = Call{}, Task{}
	return err
}

func (pl *Pipeline) begin(call Call, t *Task) {
	pl.call, pl.task = call, *t
	if t.Plan.Forwards() {
		pl.task.Input, pl.task.Src, pl.task.forwards = t.Src, t.Dst, true
	}
	pl.inPlace = pl.task.Src.is(&pl.task.Dst)
	pl.mostAhead, pl.chunk = mostChunks, max(pl.ChunkSize/call.Elem, 1)
	pl.slots = min(max(mostScratch/(pl.chunk*call.Elem), fewestScratch), mostChunks)
	if t.Kernel != nil {
		pl.mostAhead = pl.slots
	}
	pl.out, pl.in, pl.done, pl.waiting, pl.last, pl.sentAhead = cursor{}, cursor{}, cursor{}, 0, 0, 0
	pl.unmerged = pl.scratchFor(t.Plan)
	if v := &pl.task.Dst; pl.inPlace && len(v.Bufs) == 0 {
		if n := (t.Plan.Extent()-v.Base)*call.Elem - len(v.Buf); n > 0 {
			v.extra = pl.scratch.Take(n)
			pl.task.Src.extra = v.extra
		}
	}
}

// run merges chunk after chunk, until all have been merged and the last one to be sent is under way.
func (pl *Pipeline) run() error {
	p := pl.task.Plan
	for {
		for !pl.awaited.isFull() && pl.mayReceive() {
			pl.receive()
		}
		if err := pl.reap(); err != nil {
			return err
		}
		for !pl.sent.isFull() && pl.maySend() {
			pl.send()
		}
		switch {
		case pl.isDue():
			if err := pl.sendNow(); err != nil {
				return err
			}
		case pl.done.step == len(p):
			return nil
		default:
			if err := pl.merge(&p[pl.done.step]); err != nil {
				return err
			}
		}
	}
}

// isDue reports whether the next chunk has to be sent before any other is merged.
func (pl *Pipeline) isDue() bool {
	p, next := pl.task.Plan, pl.done
	switch {
	case pl.out.step == len(p):
		return false
	case pl.out.isBefore(pl.done):
		return true
	case pl.out.step > pl.done.step || !pl.inPlace:
		return false
	}
	s := &p[pl.out.step] // the next chunk to be merged may overwrite a part of it
	return s.From != plan.None && s.To != plan.None && pl.out.rest(s.Send).Overlaps(next.take(s.Recv, pl.chunk))
}

func (pl *Pipeline) isCopy(s *plan.Step) bool { return s.To == pl.rank && s.From == s.To }

// sendNow sends the next chunk, if the step has one. It first waits for others if too many are under way. An empty
// message does not wait for one that is not eager: a barrier sends several before it receives, and so do its peers.
func (pl *Pipeline) sendNow() error {
	s := &pl.task.Plan[pl.out.step]
	if s.To == plan.None || pl.isCopy(s) {
		pl.out = cursor{step: pl.out.step + 1}
		return nil
	}
	for !pl.sent.isEmpty() && (pl.sent.isFull() || s.Send.Len() > 0 && !pl.isEager(s)) {
		if err := pl.wait(pl.sent.pop().op); err != nil {
			return err
		}
	}
	pl.send()
	return nil
}

// isEager reports whether the next chunk, which is of s, is sent as an eager message.
func (pl *Pipeline) isEager(s *plan.Step) bool {
	n := min(pl.out.rest(s.Send).Len(), pl.chunk) * pl.call.Elem
	return pl.comm.IsEager(pl.ranks[s.To], n)
}

// send sends the next chunk.
func (pl *Pipeline) send() {
	s := &pl.task.Plan[pl.out.step]
	r := pl.out.take(s.Send, pl.chunk)
	op := pl.comm.SendChunk(pl.ranks[s.To], pl.call.Seq, pl.call.Call, pl.task.source(s).At(r, pl.call.Elem), s.Send.Len()*pl.call.Elem)
	if pl.task.sendsInput(s) {
		r = plan.Range{} // nothing is received there, so no receive waits for this send
	}
	pl.sent.push(transfer{op: op, r: r})
	pl.sentAhead++
}

// receive posts the receive of the next chunk.
func (pl *Pipeline) receive() {
	s := &pl.task.Plan[pl.in.step]
	r := pl.in.take(s.Recv, pl.chunk)
	buf := pl.task.Dst.At(r, pl.call.Elem)
	if s.Merge != plan.Replace {
		at := pl.last * len(pl.unmerged) / pl.slots
		buf = pl.unmerged[at:][:len(buf)]
		pl.last = (pl.last + 1) % pl.slots
		pl.waiting++
	}
	op := pl.comm.RecvChunk(pl.ranks[s.From], pl.call.Seq, pl.call.Call, buf, s.Recv.Len()*pl.call.Elem)
	pl.awaited.push(transfer{op, r, buf})
}

// merge waits for the next chunk of s and combines it with what is there. If s moves nothing to this rank, merge does
// all of s.
func (pl *Pipeline) merge(s *plan.Step) error {
	dst, elem := &pl.task.Dst, pl.call.Elem
	switch {
	case pl.isCopy(s):
		if err := pl.free(s.Recv); err != nil {
			return err
		}
		into := dst.At(s.Recv, elem)
		mergeInto(s.Merge, pl.task.Kernel, into, into, pl.task.source(s).At(s.Send, elem))
		fallthrough
	case s.From == plan.None:
		pl.done.step++
		return nil
	}
	next := pl.done
	r := next.take(s.Recv, pl.chunk)
	if pl.awaited.isEmpty() { // what is in its place was still needed
		if err := pl.free(r); err != nil {
			return err
		}
		pl.in = pl.done
		pl.receive()
	}
	got := pl.awaited.pop()
	if err := pl.wait(got.op); err != nil {
		return err
	}
	if s.Merge != plan.Replace {
		if err := pl.free(r); err != nil {
			return err
		}
		pl.waiting--
		mergeInto(s.Merge, pl.task.Kernel, dst.At(r, elem), pl.task.operand(s).At(r, elem), got.buf)
	}
	pl.done = next
	pl.sentAhead--
	return nil
}

// mergeInto combines own with what has arrived.
func mergeInto(m plan.Merge, kernel reduce.Kernel, into, own, arrived []byte) {
	switch {
	case len(into) == 0:
	case m == plan.Left:
		kernel(into, arrived, own)
	case m == plan.Right:
		kernel(into, own, arrived)
	default:
		copy(into, arrived)
	}
}

// reap removes the oldest sends that have ended.
func (pl *Pipeline) reap() error {
	for !pl.sent.isEmpty() && pl.sent.oldest().op.Ended() {
		if err := pl.wait(pl.sent.pop().op); err != nil {
			return err
		}
	}
	return nil
}

// free waits until no send reads from r, which is about to be overwritten.
func (pl *Pipeline) free(r plan.Range) error {
	for pl.inPlace && pl.sent.has(r) {
		if err := pl.wait(pl.sent.pop().op); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for op, and releases its memory for another operation.
func (pl *Pipeline) wait(op *endpoint.Op) error {
	defer op.Free()
	if op.Poll() {
		return op.Err()
	}
	return op.Sleep(pl.call.Caller.Context(), pl.call.Caller.Remaining())
}
