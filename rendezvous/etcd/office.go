package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// futility counts what a leader has tried to decide in vain. Etcd may refuse its writes, or lose them on the way, although it reads
// and keeps its lease, as where only small messages pass. Then another node is to lead. After each try the leader reads, before it
// tries again; so that etcd is away, for everybody, does not count.
type futility struct {
	tried *view // what the last try went by, until it is known what has come of it; nil: that is known
	times int
	since time.Time // of the first
}

// futileTries are so many that they are no accident, if the time is up as well.
const futileTries = 3

// try is for a try that goes by v.
func (f *futility) try(v *view) { f.tried = v }

// see is for what is read after it.
func (f *futility) see(now *view) {
	before := f.tried
	f.tried = nil
	switch {
	case before == nil:
	case now.currentRev != before.currentRev || now.state != nil:
		f.times = 0
	default:
		if f.times++; f.times == 1 {
			f.since = time.Now()
		}
	}
}

// lasts reports whether all has been in vain n times as often, and as long, as is put up with.
func (f *futility) lasts(n int, patience time.Duration) bool {
	return f.times >= n*futileTries && time.Since(f.since) >= time.Duration(n)*patience
}

// abdicate makes room for another leader. Where even that is in vain, this node's lease is not renewed any more, see turn.
func (l *loop) abdicate() {
	v, patience := l.view, l.config.patience()
	l.abstains = time.Now().Add(patience)
	l.futile.try(v)
	l.start(deciding, func(ctx context.Context) error { return l.etcd.abdicate(ctx, v) }, func(err error) {
		if err == nil {
			l.config.Log.Warn("this node leads, and can read but not write what is decided: it makes room for another leader",
				"for", time.Since(l.futile.since).Round(time.Second))
		}
		l.onWritten(err)
	})
}

// turn gives keepLease its turn: renew reports whether this node makes progress, and on whether it goes on.
func (l *loop) turn() (renew, on bool) {
	answer := make(chan bool, 1)
	if !l.post(func() { answer <- !l.futile.lasts(2, l.config.patience()) }) {
		return false, false
	}
	return <-answer, true
}

// abdicate gives up the office that the node had in v.
func (w *writer) abdicate(ctx context.Context, v *view) error {
	_, err := w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.LeaseValue(w.keys.leader()), "=", v.leaderLease)).
		Then(clientv3.OpDelete(w.keys.leader())).
		Commit()
	return err
}
