package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// attempts are a leader's attempts to write what it has decided, counted while they fail one after the other. Etcd may refuse its
// writes, or lose them on the way, although the leader reads and renews its lease, as where only small messages pass. Then another
// node is to lead. After each attempt the leader reads, before it makes the next one; so an etcd that nobody reaches does not
// count.
type attempts struct {
	pending *view // what the last one went by, until the next read tells what has come of it; nil: there is none
	failed  int   // in a row
	since   time.Time
}

// failedLimit is how many attempts in a row may fail by accident.
const failedLimit = 3

// begin notes an attempt that goes by v.
func (a *attempts) begin(v *view) { a.pending = v }

// settle takes now, which is read after the attempt: it has failed if nothing is decided there.
func (a *attempts) settle(now *view) {
	before := a.pending
	a.pending = nil
	switch {
	case before == nil:
	case now.currentRev != before.currentRev || now.state != nil:
		a.failed = 0
	default:
		if a.failed++; a.failed == 1 {
			a.since = time.Now()
		}
	}
}

// failing reports whether n times failedLimit attempts have failed, and n times patience has passed since the first of them.
func (a *attempts) failing(n int, patience time.Duration) bool {
	return a.failed >= n*failedLimit && time.Since(a.since) >= time.Duration(n)*patience
}

// stepDown makes room for another leader. If even that fails, this node's lease is not renewed any more, see turn.
func (l *loop) stepDown() {
	v, patience := l.view, l.config.patience()
	l.abstains = time.Now().Add(patience)
	l.attempts.begin(v)
	l.start(deciding, func(ctx context.Context) error { return l.etcd.stepDown(ctx, v) }, func(err error) {
		if err == nil {
			l.config.Log.Warn("this node leads, and can read but not write what it decides: it steps down",
				"for", time.Since(l.attempts.since).Round(time.Second))
		}
		l.onWritten(err)
	})
}

// turn gives keepLease its turn. renew is false while this node leads and cannot even step down; on is false when the node ends.
func (l *loop) turn() (renew, on bool) {
	answer := make(chan bool, 1)
	if !l.post(func() { answer <- !l.attempts.failing(2, l.config.patience()) }) {
		return false, false
	}
	return <-answer, true
}

// stepDown deletes job/leader, if it is still what this node wrote as the leader in v.
func (w *writer) stepDown(ctx context.Context, v *view) error {
	_, err := w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.LeaseValue(w.keys.leader()), "=", v.leaderLease)).
		Then(clientv3.OpDelete(w.keys.leader())).
		Commit()
	return err
}
