package comm

import (
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

const (
	// mostPieces is how many pieces are under way, each way.
	mostPieces = 16
	// mostScratch is how many of them wait to be combined.
	mostScratch = 8
	// mostSteps is how many steps ahead is looked for pieces.
	mostSteps = 8
)

// A flow carries out the plan of a task: the one place that both moves and reduces. There is one for each group, which only
// the collective whose turn it is uses.
//
// Messages travel in pieces, and ahead of the order in which steps take effect: a piece is sent as soon as what it is of is
// there, and awaited as soon as nobody needs any more what is in its place. So pieces pass through a rank, as the links of
// a chain, and one is combined while the next is on its way. Whatever it waits for, a rank has sent all that the plan sends
// before: that, and pieces that are sent without being asked for or wait for their receiver where they are, is why it cannot
// wait for ever, if a plan of whole messages cannot.
type flow struct {
	c     *collective
	t     task
	whole bool // what is sent and what is received are one vector
	piece int  // elements
	room  []byte

	out, in, done cursor // what is to be sent next, awaited next, merged next
	sent, awaited queue
	scratch       int // pieces in room
	last          int // of them
	lead, most    int // how many more pieces have been sent than merged, and at most are sent ahead of time
}

// execute carries out t's plan.
func (c *collective) execute(t *task) error {
	if callKind(c.call.Op) == callMonitoredBarrier {
		defer c.callRoll()()
	}
	f := &c.g.flow
	f.begin(c, t)
	err := f.run()
	if err != nil {
		c.g.lane.Fail(c.g.asFailure(err)) // so that everything under way ends
	}
	if ended := f.end(); err == nil {
		err = ended
	}
	return err
}

// end waits until nothing is under way, and returns the first error.
func (f *flow) end() (err error) {
	for !f.sent.isEmpty() || !f.awaited.isEmpty() {
		q := &f.awaited
		if q.isEmpty() {
			q = &f.sent
		}
		if ended := f.wait(q.pop().op); err == nil {
			err = ended
		}
	}
	f.c, f.t = nil, task{}
	return err
}

func (f *flow) begin(c *collective, t *task) {
	f.c, f.t = c, *t
	f.whole = t.src.is(&t.dst)
	f.most, f.piece = mostPieces, max(c.g.w.piece/c.elem, 1)
	if t.kernel != nil {
		f.most = mostScratch
	}
	f.out, f.in, f.done, f.scratch, f.last, f.lead = cursor{}, cursor{}, cursor{}, 0, 0, 0
	f.room = c.g.room(t.plan, f.piece, c.elem)
}

// run merges piece after piece, until all have been and the last one to be sent is under way.
func (f *flow) run() error {
	p := f.t.plan
	for {
		for !f.awaited.isFull() && f.mayReceive() {
			f.receive()
		}
		if err := f.reap(); err != nil {
			return err
		}
		for !f.sent.isFull() && f.maySend() {
			f.send()
		}
		switch {
		case f.isDue():
			if err := f.sendNow(); err != nil {
				return err
			}
		case f.done.step == len(p):
			return nil
		default:
			if err := f.merge(&p[f.done.step]); err != nil {
				return err
			}
		}
	}
}

// isDue says whether the next piece has to be sent before any other is merged.
func (f *flow) isDue() bool {
	p, next := f.t.plan, f.done
	switch {
	case f.out.step == len(p):
		return false
	case f.out.isBefore(f.done):
		return true
	case f.out.step > f.done.step || !f.whole:
		return false
	}
	s := &p[f.out.step] // of which the next one to be merged may overwrite a part
	return s.From != plan.None && s.To != plan.None && f.out.rest(s.Send).Overlaps(next.take(s.Recv, f.piece))
}

func (f *flow) isCopy(s *plan.Step) bool { return s.To == f.c.g.rank && s.From == s.To }

// sendNow sends the next piece, if the step has one, and waits for others if too many are under way.
func (f *flow) sendNow() error {
	s := &f.t.plan[f.out.step]
	if s.To == plan.None || f.isCopy(s) {
		f.out = cursor{step: f.out.step + 1}
		return nil
	}
	for !f.sent.isEmpty() && (f.sent.isFull() || !f.travels(s)) {
		if err := f.wait(f.sent.pop().op); err != nil {
			return err
		}
	}
	f.send()
	return nil
}

// travels says whether the next piece, which is of s, goes without being asked for.
func (f *flow) travels(s *plan.Step) bool {
	n := min(f.out.rest(s.Send).Len(), f.piece) * f.c.elem
	return f.c.g.lane.TravelsAtOnce(f.c.g.ranks[s.To], n)
}

// send sends the next piece.
func (f *flow) send() {
	c, s := f.c, &f.t.plan[f.out.step]
	r := f.out.take(s.Send, f.piece)
	op := c.g.lane.SendPiece(c.g.ranks[s.To], c.seq, c.call, f.t.src.at(r, c.elem), s.Send.Len()*c.elem)
	f.sent.push(under{op: op, r: r})
	f.lead++
}

// receive awaits the next piece.
func (f *flow) receive() {
	c, s := f.c, &f.t.plan[f.in.step]
	r := f.in.take(s.Recv, f.piece)
	buf := f.t.dst.at(r, c.elem)
	if s.Merge != plan.Replace {
		at := f.last * len(f.room) / mostScratch
		buf = f.room[at:][:len(buf)]
		f.last = (f.last + 1) % mostScratch
		f.scratch++
	}
	op := c.g.lane.RecvPiece(c.g.ranks[s.From], c.seq, c.call, buf, s.Recv.Len()*c.elem)
	f.awaited.push(under{op, r, buf})
}

// merge makes the next piece of s part of what is there, once it has come; or all of s that moves nothing to this rank.
func (f *flow) merge(s *plan.Step) error {
	dst, elem := &f.t.dst, f.c.elem
	switch {
	case f.isCopy(s):
		if err := f.free(s.Recv); err != nil {
			return err
		}
		copy(dst.at(s.Recv, elem), f.t.src.at(s.Send, elem))
		fallthrough
	case s.From == plan.None:
		f.done.step++
		return nil
	}
	next := f.done
	r := next.take(s.Recv, f.piece)
	if f.awaited.isEmpty() { // as what is in its place was still needed
		if err := f.free(r); err != nil {
			return err
		}
		f.in = f.done
		f.receive()
	}
	got := f.awaited.pop()
	if err := f.wait(got.op); err != nil {
		return err
	}
	if s.Merge != plan.Replace {
		if err := f.free(r); err != nil {
			return err
		}
		f.scratch--
		own := dst
		if f.t.own.buf != nil {
			own = &f.t.own
		}
		mergeInto(s.Merge, f.t.kernel, dst.at(r, elem), own.at(r, elem), got.buf)
	}
	f.done = next
	f.lead--
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
func (f *flow) reap() error {
	for !f.sent.isEmpty() && f.sent.oldest().op.Ended() {
		if err := f.wait(f.sent.pop().op); err != nil {
			return err
		}
	}
	return nil
}

// free waits until nothing that is being sent is of r, which is about to be overwritten.
func (f *flow) free(r plan.Range) error {
	for f.whole && f.sent.has(r) {
		if err := f.wait(f.sent.pop().op); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for op, and lets its memory be that of another operation.
func (f *flow) wait(op *endpoint.Op) error {
	defer op.Free()
	if op.Poll() {
		return op.Err()
	}
	return op.Sleep(f.c.ctx, f.c.left())
}
