package endpoint

import (
	"context"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// A waiter is a goroutine that waits for an operation and does not poll. Guarded by the endpoint's mutex, except for wake
// and alarm.
type waiter struct {
	wake  chan struct{} // something is to be looked at: the operation has ended, or it is this one's turn to poll
	alarm *time.Timer
	next  *waiter // for the same operation
}

func (w *waiter) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Wait waits for the operation until ctx ends or timeout has passed (0: no limit). A receive that nothing has
// matched yet is then withdrawn and the group goes on; anything else leaves the group's traffic in an unknown
// state, so the lane fails for all its members. A wait that lasts asks the peer why.
func (op *Op) Wait(ctx context.Context, timeout time.Duration) error {
	if op.Poll() {
		return op.err
	}
	return op.Sleep(ctx, timeout)
}

// Poll waits for the operation as long as it is likely to end soon, and says whether it has: Sleep is to follow if not.
func (op *Op) Poll() bool {
	if !op.finished() {
		e := op.lane.ep
		e.mu.Lock()
		e.beginWait()
		e.poll(op)
		e.mu.Unlock()
	}
	return op.finished()
}

// Sleep is what is left of Wait after Poll.
func (op *Op) Sleep(ctx context.Context, timeout time.Duration) error {
	e := op.lane.ep
	e.mu.Lock()
	w := e.standBy(op)
	e.mu.Unlock()
	w.wait(ctx, op, timeout)
	e.mu.Lock()
	e.goOn(w)
	e.mu.Unlock()
	return op.err
}

// wait waits without polling, except when it is told to.
func (w *waiter) wait(ctx context.Context, op *Op, timeout time.Duration) {
	e := op.lane.ep
	begun := time.Now()
	w.alarm.Reset(diagnosis.FirstPause(timeout))
	defer w.alarm.Stop()
	var s *stall
	defer func() { s.close() }()
	ended := ctx.Done()
	for !op.finished() {
		select {
		case <-w.wake:
			e.mu.Lock()
			e.poll(op)
			e.mu.Unlock()
		case <-ended:
			op.cancel(&diagnosis.Failure{Kind: diagnosis.Aborted, Rank: e.rank, Text: ctx.Err().Error(), Err: ctx.Err()})
			ended = nil
		case <-w.alarm.C:
			if s == nil {
				s = op.stall(begun, timeout)
			}
			if pause := s.ask(); pause > 0 {
				w.alarm.Reset(pause)
			} else {
				op.cancel(s.failure())
			}
		}
	}
}

// standBy makes the caller a waiter for op, until goOn. The mutex is held.
func (e *Endpoint) standBy(op *Op) *waiter {
	var w *waiter
	if n := len(e.spare); n > 0 {
		w, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		w = &waiter{wake: make(chan struct{}, 1), alarm: time.NewTimer(time.Hour)}
	}
	w.next, op.waiters = op.waiters, w
	e.waiting++
	e.acknowledge(op)
	if e.polling {
		e.line = append(e.line, w)
	}
	e.nudge()
	return w
}

// goOn ends w, whose operation has ended. The mutex is held.
func (e *Endpoint) goOn(w *waiter) {
	e.waiting--
	if i := slices.Index(e.line, w); i >= 0 {
		e.line = slices.Delete(e.line, i, i+1)
	} else if !e.polling {
		e.passTurn() // it may have been given to w
	}
	select {
	case <-w.wake:
	default:
	}
	w.next = nil
	e.spare = append(e.spare, w)
}

// passTurn lets the first in the line poll. The mutex is held.
func (e *Endpoint) passTurn() {
	if len(e.line) > 0 {
		e.line[0].poke()
		e.line = slices.Delete(e.line, 0, 1)
	}
}
