package admission

import (
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// kinds is how many reasons get a line of their own in the log.
	kinds = 8
	// firstPeriod and longestPeriod are the times between two lines that sum up the rest.
	firstPeriod, longestPeriod = time.Minute, time.Hour
)

// A tally keeps strangers from filling the log: it logs the first of each kind, and the number of the others now and then.
type tally struct {
	log func(msg string, args ...any)

	mu     sync.Mutex
	logged map[string]bool
	more   int
	from   string // address of the last one
	reason string
	period time.Duration
	timer  *time.Timer // runs while more is not 0
	closed bool
}

// add records a connection that was turned away because of err. from may be nil.
func (t *tally) add(from net.Addr, err error) {
	reason, name := cause(err).Error(), ""
	if from != nil {
		name = from.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if !t.logged[reason] && len(t.logged) < kinds {
		if t.logged == nil {
			t.logged, t.period = make(map[string]bool), firstPeriod
		}
		t.logged[reason] = true
		t.log("turned away a connection", "from", name, "reason", reason)
		return
	}
	t.more++
	t.from, t.reason = name, reason
	if t.timer == nil {
		t.timer = time.AfterFunc(t.period, t.sum)
	}
}

// sum logs the number of connections that had no line of their own.
func (t *tally) sum() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		return
	}
	t.timer = nil
	t.log("turned away more connections", "number", t.more, "last", t.from, "reason", t.reason)
	t.more, t.period = 0, min(2*t.period, longestPeriod)
}

// close logs the last sum.
func (t *tally) close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.sum()
}

// cause returns err without the addresses of the connection, which differ each time.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
