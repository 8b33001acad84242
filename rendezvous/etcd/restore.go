package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// An etcd may lose what it has been told: it comes back empty, or as it was long ago, or all agents have been cut off for so
// long that leases have run out. The agents know the job: each puts back what it has read last, for all of them the same. What
// is further on wins. So there is one history, unless a job of the same name has begun meanwhile, with a round of its own: then
// this one is over.

// A comparison says how what is read of a job compares with what was read before.
type comparison int

const (
	intact  comparison = iota // it is what is known, or later
	lost                      // some of what is known is missing, or not yet told
	another                   // it is another job's, or another round has the same number
)

// compare says what has become of the job with that ID, of which past was read last.
func (v *view) compare(job string, past *view) comparison {
	switch {
	case job == "":
		return intact
	case v.state != nil && v.state.Job == job:
		return intact
	case v.state != nil || v.config.Job != job && v.current != nil:
		return another
	case v.config.Job != job:
		return lost
	case past == nil:
		return intact
	case v.current == nil:
		return lost
	}
	now, then := v.current, past.current
	switch {
	case now.Round > then.Round:
		return intact
	case now.Round < then.Round:
		return lost
	case now.ID != then.ID:
		return another
	case now.Over == nil && then.Over != nil, v.round == nil && past.round != nil:
		return lost
	}
	return intact
}

// recall makes the newest view that of this node's job, if it is. Otherwise the job is put back, or is over.
func (l *loop) recall() bool {
	v := l.view
	if _, has := v.seat(l.etcd.key); has && l.job == "" { // this node does not know yet that it has enrolled
		l.job = v.config.Job
	}
	switch v.compare(l.job, l.past) {
	case another:
		l.finish(&rendezvous.ClosedError{Outcome: rendezvous.Outcome{
			Code:   codeUnformed,
			Reason: fmt.Sprintf("etcd has lost this job, and has another one of the name %q: choose another run ID for one of them", l.config.RunID),
		}})
		return false
	case lost:
		if l.past == nil { // no round was formed: the job has not begun
			l.job, l.under = "", 0
			return true
		}
		if !l.forgotten {
			l.config.Log.Warn("etcd has lost what it knew of the job; this node puts back what it knows", "round", l.past.current.Round)
			l.rewatch()
		}
		l.forgotten = true
		return false
	case intact:
	}
	if l.forgotten {
		l.forgotten = false
		if l.reporting != nil {
			l.reporting.recorded = false
		}
	}
	if v.current != nil && v.current.Restored && (l.past == nil || l.past.current.Round != v.current.Round || !l.past.current.Restored) {
		l.unsettle(staleLimit * retryPause) // for which others, who may know of a later round, do not believe what they read
	}
	if l.job != "" && v.current != nil {
		l.past = v
	}
	return true
}

// restore puts the job back.
func (l *loop) restore() {
	if !l.forgotten || l.pulse.lease == 0 {
		return
	}
	now, past := l.view, l.past
	l.start(restoring, func(ctx context.Context) error {
		return l.etcd.restore(ctx, now, past, l.config.keep())
	}, func(err error) {
		l.dirty = true
		if err != nil {
			l.onFailure(err)
		}
	})
}

// restore writes what is missing in now of what was read before, if now is still what is.
func (w *writer) restore(ctx context.Context, now, past *view, keep time.Duration) (err error) {
	lease := now.config.lease
	var then []clientv3.Op
	if now.config.Job != past.config.Job {
		kept, err := w.client.Grant(ctx, seconds(keep))
		if err != nil {
			return err
		}
		lease = kept.ID
		config, err := encode(w.keys.config(), past.config.configDoc)
		if err != nil {
			return err
		}
		then = append(then, clientv3.OpPut(w.keys.config(), config, clientv3.WithLease(lease)))
	}
	put := clientv3.WithLease(lease)
	if now.current == nil || now.current.Round != past.current.Round || now.current.Over == nil && past.current.Over != nil {
		doc := *past.current
		doc.Restored = true
		current, err := encode(w.keys.current(), doc)
		if err != nil {
			return err
		}
		then = append(then, clientv3.OpPut(w.keys.current(), current, put))
		if now.current != nil && now.current.Round != past.current.Round {
			then = append(then, clientv3.OpDelete(w.keys.roundOf(now.current.Round), clientv3.WithPrefix()))
		}
	}
	if past.round != nil && past.round.ID == past.current.Round {
		key := w.keys.round(past.round.ID, initial(w.key))
		text, err := encode(key, *past.round)
		if err != nil {
			return err
		}
		then = append(then, clientv3.OpPut(key, text, put))
	}
	answer, err := w.client.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(w.keys.config()), "=", now.config.rev),
		clientv3.Compare(clientv3.ModRevision(w.keys.current()), "=", now.currentRev),
		clientv3.Compare(clientv3.CreateRevision(w.keys.state()), "=", 0),
	).Then(then...).Else(clientv3.OpGet(w.keys.config())).Commit()
	if lease == now.config.lease || err == nil && (answer.Succeeded || leaseOf(answer.Responses[0]) == lease) {
		return err
	}
	return errors.Join(err, w.revoke(ctx, lease))
}
