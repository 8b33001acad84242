package node

import (
	"context"
	"log/slog"
	"time"
)

// attempts are a leader's attempts to write what it has decided, counted while they fail one after the other. The store
// may refuse its writes, or lose them on the way, although the leader reads and renews its lease, as where only small
// messages pass. Then another node is to lead. After each attempt the leader reads, before it makes the next one; so a
// store that nobody reaches does not count.
type attempts struct {
	pending *view // what the last one went by, until the next read tells what has come of it; nil: there is none
	failed  int   // in a row
	since   time.Time
}

// failedLimit is how many attempts in a row may fail by accident.
const failedLimit = 3

// resolve takes what is read after the attempt. It reports whether the attempt has failed, since nothing is decided there.
func (a *attempts) resolve(v *view, now time.Time) (failed bool) {
	before := a.pending
	a.pending = nil
	switch {
	case before == nil:
	case v.currentRev != before.currentRev || v.state != nil:
		a.failed = 0
	default:
		if a.failed++; a.failed == 1 {
			a.since = now
		}
		failed = true
	}
	return failed
}

// failing reports whether n times failedLimit attempts have failed, and n times a timeout has passed since the first of them.
func (a *attempts) failing(n int, timeout time.Duration, now time.Time) bool {
	return a.failed >= n*failedLimit && now.Sub(a.since) >= time.Duration(n)*timeout
}

// stepDown makes room for another leader. If even that fails, this node's lease is not renewed any more, see mayLive.
func (l *leader) stepDown() {
	l.abstains = l.now.Add(l.config.failureTimeout())
	l.attempts.pending = l.conn.view
	l.request(deciding, &stepDown{l.conn.view})
}

// stepDown deletes job/leader, if it is still what this node wrote as the leader in view.
type stepDown struct{ view *view }

func (r *stepDown) do(ctx context.Context, x *executor) error {
	leader := x.keys.leader()
	return x.when(isLeased(leader, r.view.leaderLease)).delete(leader).try(ctx)
}

func (*stepDown) done(m *stateMachine, err error) {
	m.onWritten(err)
	if err == nil {
		m.log(slog.LevelWarn, "this node leads, but cannot write its decisions: it steps down",
			"for", m.now.Sub(m.leader.attempts.since).Round(time.Second))
	}
}

// mayLive is false while this node leads and cannot even step down.
func (l *leader) mayLive() bool { return !l.attempts.failing(2, l.config.failureTimeout(), l.now) }
