package progress

import (
	"slices"
	"sync/atomic"
	"time"
)

// A Request is something that goroutines wait for. The mutex guards it until it has ended, except for Ended.
type Request struct {
	ended   atomic.Bool
	done    chan struct{} // closed when it has ended; nil if nobody has asked for it
	waiters *Waiter
}

// Ended reports whether the request has ended.
func (r *Request) Ended() bool { return r.ended.Load() }

// Done is closed when the request has ended. c is the stream that it waits for, or nil if any will do. The mutex is held.
func (e *Engine) Done(r *Request, c *Conn) <-chan struct{} {
	if r.done == nil {
		r.done = make(chan struct{})
		e.BeginWait()
		e.acknowledge(c)
		e.endPause()
		if r.Ended() {
			close(r.done)
		}
	}
	return r.done
}

// End ends r. Who sees that it has ended may use its memory for something else. The mutex is held.
func (e *Engine) End(r *Request) {
	done, w := r.done, r.waiters
	if done != nil || w != nil {
		e.woken = true
	}
	r.ended.Store(true)
	if done != nil {
		close(done)
	}
	for ; w != nil; w = w.next {
		w.wake()
	}
}

// A Waiter is a goroutine that waits for a request and does not poll. Guarded by the mutex, except for Wake and Alarm.
type Waiter struct {
	Wake  chan struct{} // the request has ended, or it is this one's turn to poll
	Alarm *time.Timer   // its own; it is stopped
	next  *Waiter       // for the same request
}

func (w *Waiter) wake() {
	select {
	case w.Wake <- struct{}{}:
	default:
	}
}

// Park makes the caller a waiter for r, until Unpark. c is the stream that r waits for, or nil if any will do. The mutex is held.
func (e *Engine) Park(r *Request, c *Conn) *Waiter {
	var w *Waiter
	if n := len(e.spare); n > 0 {
		w, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		w = &Waiter{Wake: make(chan struct{}, 1), Alarm: time.NewTimer(time.Hour)}
	}
	w.next, r.waiters = r.waiters, w
	e.parked++
	e.acknowledge(c)
	if e.polling {
		e.line = append(e.line, w)
	}
	e.endPause()
	return w
}

// Unpark ends w, whose request has ended. The mutex is held.
func (e *Engine) Unpark(w *Waiter) {
	e.parked--
	if i := slices.Index(e.line, w); i >= 0 {
		e.line = slices.Delete(e.line, i, i+1)
	} else if !e.polling {
		e.passTurn() // it may have been given to w
	}
	select {
	case <-w.Wake:
	default:
	}
	w.next = nil
	e.spare = append(e.spare, w)
}

// passTurn lets the first in the line poll. The mutex is held.
func (e *Engine) passTurn() {
	if len(e.line) > 0 {
		e.line[0].wake()
		e.line = slices.Delete(e.line, 0, 1)
	}
}
