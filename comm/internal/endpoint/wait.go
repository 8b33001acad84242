package endpoint

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/progress"
)

// Wait waits for the operation until ctx ends or timeout has passed (0: no limit). A receive that nothing has
// matched yet is then withdrawn and the group goes on; anything else leaves the group's traffic in an unknown
// state, so the communicator fails for all its members. A wait that lasts asks the peer why.
func (op *Op) Wait(ctx context.Context, timeout time.Duration) error {
	if op.Poll() {
		return op.err
	}
	return op.Sleep(ctx, timeout)
}

// Poll waits for the operation as long as it is likely to end soon, and reports whether it has ended. If not, the caller calls Sleep.
func (op *Op) Poll() bool {
	if !op.Ended() {
		in := op.lock()
		in.attended = true
		in.comm.ep.engine.BeginWait()
		in.pollAndUnlock()
	}
	return op.Ended()
}

// Sleep waits without polling, as Wait does after Poll.
func (op *Op) Sleep(ctx context.Context, timeout time.Duration) error {
	in := op.lock()
	e := in.comm.ep
	w := e.engine.Park(&in.Request, in.conn())
	e.parked++
	in.unlock()
	op.park(ctx, w, timeout)
	in = op.lock()
	e.parked--
	e.engine.Unpark(w)
	in.unlock()
	return op.err
}

// conn is the stream that op waits for, or nil if any will do.
func (op *operation) conn() *progress.Conn {
	if op.peer < 0 {
		return nil
	}
	return op.comm.ep.engine.Conn(op.peer)
}

// pollAndUnlock polls for op, unless no message tells of it. It lets go of the mutex, also if a buffer is no memory.
func (op *operation) pollAndUnlock() {
	defer op.unlock()
	if op.happened == nil {
		op.comm.ep.engine.Poll(&op.Request, op.conn())
	}
}

// park waits without polling, except when it is its turn.
func (op *Op) park(ctx context.Context, w *progress.Waiter, timeout time.Duration) {
	begun := time.Now()
	w.Alarm.Reset(diagnosis.FirstPause(timeout))
	defer w.Alarm.Stop()
	var s *stall
	defer func() { s.close() }()
	ended, poll := ctx.Done(), pollOf(ctx)
	due := poll.due()
	giveUp := func(err error) {
		op.cancel(&diagnosis.Failure{Kind: diagnosis.Aborted, Rank: op.comm.ep.rank, Text: err.Error(), Err: err})
	}
	for !op.Ended() {
		select {
		case <-w.Wake:
			op.lock().pollAndUnlock()
		case <-ended:
			giveUp(ctx.Err())
			ended = nil
		case <-due:
			due = nil
			if err := poll.call(); err != nil {
				giveUp(err)
			} else {
				due = poll.due()
			}
		case <-w.Alarm.C:
			if s == nil {
				s = op.stall(begun, timeout)
			}
			if pause := s.ask(); pause > 0 {
				w.Alarm.Reset(pause)
			} else {
				in := op.lock()
				f := s.Failure(in.awaits(), time.Now())
				in.unlock()
				op.cancel(f)
			}
		}
	}
}
