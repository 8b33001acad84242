package endpoint

import (
	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/flight"
)

// Begin says that this rank starts collective seq, before which the group's history is before; End follows. A member that has called something else by then fails the lane.
func (l *Lane) Begin(seq uint64, c call.Call, before uint32) error {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	l.takeOver()
	l.collectives.Begin(call.Fingerprint{Seq: seq, Call: c, Before: before}, 0, 0)
	return l.compareAll()
}

// End says that collective seq has ended.
func (l *Lane) End(seq uint64, err error) {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.takeOver()
	l.collectives.End(seq, err)
}

// Trace is where to note collectives that this rank carries out without the endpoint.
func (l *Lane) Trace() *flight.Trace {
	l.trace.Use()
	return &l.trace
}

// takeOver takes over what has been noted in the trace. The endpoint's mutex is held.
func (l *Lane) takeOver() { l.collectives.TakeOver(&l.trace) }

// Moved counts bytes for collective seq that have been moved by other means.
func (l *Lane) Moved(seq, sent, received uint64) {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.takeOver()
	l.collectives.Moved(seq, sent, received)
}

// record notes that op has ended, and counts its bytes for the collective that it is a step of or for itself.
func (l *Lane) record(op *Op) {
	sent, received := uint64(0), uint64(op.n)
	if op.send {
		sent, received = uint64(len(op.buf)), 0
	}
	switch {
	case op.err != nil || op.probe:
	case op.seq > 0:
		l.collectives.Moved(op.seq, sent, received)
	default:
		l.transfers.Moved(op.number, sent, received)
	}
	l.transfers.End(op.number, op.err)
}

// A Flight is what a lane remembers.
type Flight struct {
	Collectives []flight.Record  // oldest first
	Transfers   []flight.Record  // sends, receives and probes
	Waits       []diagnosis.Wait // of this rank for others, if they have lasted long enough to ask why
	Err         error            // why the lane has failed
}

// Flight is what the lane remembers now.
func (l *Lane) Flight() Flight {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	l.takeOver()
	f := Flight{Collectives: l.collectives.All(), Transfers: l.transfers.All(), Err: l.usable()}
	for _, s := range l.ep.stalls {
		if s.op.lane == l {
			f.Waits = append(f.Waits, s.op.awaits().Wait)
		}
	}
	return f
}
