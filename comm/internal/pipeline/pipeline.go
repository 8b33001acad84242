// Package pipeline carries out plans: it moves the messages of a plan's steps between ranks, and combines what comes with what is
// there. It is the one place that does both.
//
// Messages travel in pieces, and ahead of the order in which steps take effect. A rank sends a piece as soon as it has what the
// piece consists of, and awaits one as soon as nobody needs any more what is in its place. So pieces pass through a rank as through
// the links of a chain, and one is combined while the next is on its way.
//
// A pipeline cannot wait for ever if a plan of whole messages cannot: before a rank waits, it has sent all that the plan sends
// before, and such pieces travel without being asked for, or wait for their receiver where they are.
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
	// mostPieces is how many pieces are under way, each way.
	mostPieces = 16
	// mostScratch is how many of them wait to be combined.
	mostScratch = 8
	// mostSteps is how many steps ahead a pipeline looks for pieces.
	mostSteps = 8
)

// A Call is the collective that a task belongs to.
type Call struct {
	Seq    uint64 // its number in the group
	Call   call.Call
	Elem   int // bytes of what the plan counts in
	Caller Caller
}

// A Caller says how long a call may last.
type Caller interface {
	Context() context.Context
	// Left is how long the call may wait on. Time begins to run when it is first asked for.
	Left() time.Duration
}

// A Pipeline carries out the plans of a group's collectives, one at a time.
type Pipeline struct {
	Piece int // how many bytes of a message travel at once

	lane    *endpoint.Lane
	ranks   []int // world ranks of the group
	rank    int   // this rank's in the group
	scratch []uint64

	// Of the task under way:
	call  Call
	task  Task
	whole bool   // what is sent and what is received are the same vector
	piece int    // elements
	room  []byte // for pieces that wait to be combined

	out, in, done cursor // what is to be sent next, awaited next, merged next
	sent, awaited queue
	waiting       int // pieces in room
	last          int // of them
	lead, most    int // how many more pieces have been sent than merged, and at most are sent ahead of time
}

// New returns the pipeline of a group of world ranks, of which this one is number rank.
func New(lane *endpoint.Lane, ranks []int, rank, piece int) Pipeline {
	return Pipeline{Piece: piece, lane: lane, ranks: ranks, rank: rank}
}

// Run carries out t as a stage of call. After an error the lane has failed, and nothing of t is under way.
func (pl *Pipeline) Run(call Call, t *Task) error {
	pl.begin(call, t)
	err := pl.run()
	if err != nil {
		pl.lane.Fail(pl.lane.AsFailure(err)) // so that everything under way ends
	}
	if ended := pl.End(); err == nil {
		err = ended
	}
	return err
}

// End waits until nothing is under way, and returns the first error. The lane has failed, or a task has been carried out.
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
	pl.whole = t.Src.is(&t.Dst)
	pl.most, pl.piece = mostPieces, max(pl.Piece/call.Elem, 1)
	if t.Kernel != nil {
		pl.most = mostScratch
	}
	pl.out, pl.in, pl.done, pl.waiting, pl.last, pl.lead = cursor{}, cursor{}, cursor{}, 0, 0, 0
	pl.room = pl.roomFor(t.Plan)
}

// run merges piece after piece, until all have been and the last one to be sent is under way.
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

// isDue reports whether the next piece has to be sent before any other is merged.
func (pl *Pipeline) isDue() bool {
	p, next := pl.task.Plan, pl.done
	switch {
	case pl.out.step == len(p):
		return false
	case pl.out.isBefore(pl.done):
		return true
	case pl.out.step > pl.done.step || !pl.whole:
		return false
	}
	s := &p[pl.out.step] // of which the next one to be merged may overwrite a part
	return s.From != plan.None && s.To != plan.None && pl.out.rest(s.Send).Overlaps(next.take(s.Recv, pl.piece))
}

func (pl *Pipeline) isCopy(s *plan.Step) bool { return s.To == pl.rank && s.From == s.To }

// sendNow sends the next piece, if the step has one, and waits for others if too many are under way.
func (pl *Pipeline) sendNow() error {
	s := &pl.task.Plan[pl.out.step]
	if s.To == plan.None || pl.isCopy(s) {
		pl.out = cursor{step: pl.out.step + 1}
		return nil
	}
	for !pl.sent.isEmpty() && (pl.sent.isFull() || !pl.travels(s)) {
		if err := pl.wait(pl.sent.pop().op); err != nil {
			return err
		}
	}
	pl.send()
	return nil
}

// travels reports whether the next piece, which is of s, goes without being asked for.
func (pl *Pipeline) travels(s *plan.Step) bool {
	n := min(pl.out.rest(s.Send).Len(), pl.piece) * pl.call.Elem
	return pl.lane.TravelsAtOnce(pl.ranks[s.To], n)
}

// send sends the next piece.
func (pl *Pipeline) send() {
	s := &pl.task.Plan[pl.out.step]
	r := pl.out.take(s.Send, pl.piece)
	op := pl.lane.SendPiece(pl.ranks[s.To], pl.call.Seq, pl.call.Call, pl.task.Src.At(r, pl.call.Elem), s.Send.Len()*pl.call.Elem)
	pl.sent.push(under{op: op, r: r})
	pl.lead++
}

// receive awaits the next piece.
func (pl *Pipeline) receive() {
	s := &pl.task.Plan[pl.in.step]
	r := pl.in.take(s.Recv, pl.piece)
	buf := pl.task.Dst.At(r, pl.call.Elem)
	if s.Merge != plan.Replace {
		at := pl.last * len(pl.room) / mostScratch
		buf = pl.room[at:][:len(buf)]
		pl.last = (pl.last + 1) % mostScratch
		pl.waiting++
	}
	op := pl.lane.RecvPiece(pl.ranks[s.From], pl.call.Seq, pl.call.Call, buf, s.Recv.Len()*pl.call.Elem)
	pl.awaited.push(under{op, r, buf})
}

// merge makes the next piece of s part of what is there, once it has come; or all of s that moves nothing to this rank.
func (pl *Pipeline) merge(s *plan.Step) error {
	dst, elem := &pl.task.Dst, pl.call.Elem
	switch {
	case pl.isCopy(s):
		if err := pl.free(s.Recv); err != nil {
			return err
		}
		copy(dst.At(s.Recv, elem), pl.task.Src.At(s.Send, elem))
		fallthrough
	case s.From == plan.None:
		pl.done.step++
		return nil
	}
	next := pl.done
	r := next.take(s.Recv, pl.piece)
	if pl.awaited.isEmpty() { // as what is in its place was still needed
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
		own := dst
		if pl.task.Own.Buf != nil {
			own = &pl.task.Own
		}
		mergeInto(s.Merge, pl.task.Kernel, dst.At(r, elem), own.At(r, elem), got.buf)
	}
	pl.done = next
	pl.lead--
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

// reap makes room for what is to be sent, where what has been has gone.
func (pl *Pipeline) reap() error {
	for !pl.sent.isEmpty() && pl.sent.oldest().op.Ended() {
		if err := pl.wait(pl.sent.pop().op); err != nil {
			return err
		}
	}
	return nil
}

// free waits until nothing that is being sent is of r, which is about to be overwritten.
func (pl *Pipeline) free(r plan.Range) error {
	for pl.whole && pl.sent.has(r) {
		if err := pl.wait(pl.sent.pop().op); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for op, and lets its memory be that of another operation.
func (pl *Pipeline) wait(op *endpoint.Op) error {
	defer op.Free()
	if op.Poll() {
		return op.Err()
	}
	return op.Sleep(pl.call.Caller.Context(), pl.call.Caller.Left())
}
