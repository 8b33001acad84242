package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// onChange is for changes that a leader reads.
func (l *loop) onChange([]*clientv3.Event) { l.post(func() { l.dirty = true }) }

// onEvents takes changes of the job. They cause a read, except those that decide nothing: what people are told, who leads, for which
// round members are to probe, and the first settings of a job, which etcd checks.
func (l *loop) onEvents(events []*clientv3.Event) {
	now, news, read := *l.view, false, len(events) == 0
	hints := []string{l.etcd.keys.status(), l.etcd.keys.leader(), l.etcd.keys.probe()}
	if now.config.rev == 0 && now.current == nil {
		hints = append(hints, l.etcd.keys.config())
	}
	for _, e := range events {
		hint := e.Type == clientv3.EventTypePut && slices.Contains(hints, string(e.Kv.Key))
		if e.Kv.ModRevision > now.rev {
			news, read = true, read || !hint || now.job(l.etcd.keys, e.Kv) != nil
		}
	}
	switch {
	case read:
		l.dirty = true
	case news && now.rev > 0:
		l.view = &now
		l.follow()
	}
}

// nextRead is when the job is to be read again. Where there are many nodes, more than one may have changed by then.
func (l *loop) nextRead() time.Time {
	if !l.dirty {
		return l.readAt.Add(recheck)
	}
	return l.readAt.Add(time.Duration(len(l.view.nodes)) * breath)
}

func (l *loop) read() {
	if l.requests[reading] || time.Now().Before(l.nextRead()) {
		return
	}
	l.dirty = false
	before, whole := l.view, l.leads()
	var now *view
	var back bool // etcd has lost some of its history
	l.start(reading, func(ctx context.Context) (err error) {
		now, err = read(ctx, &l.etcd, whole, before)
		if err != nil || now.rev >= before.rev {
			return err
		}
		rev, err := l.etcd.revision(ctx)
		switch {
		case err != nil:
			return err
		case rev >= before.rev:
			return errStale
		}
		back = true
		now, err = read(ctx, &l.etcd, whole, new(view))
		if err == nil && now.rev < rev {
			err = errStale
		}
		return err
	}, func(err error) {
		switch {
		case err == nil && back && l.view == before:
			l.under = 0 // etcd may know an older state of this node, or none
			l.rewatch()
			l.becomeFollower() // and a leader begins the watch of its own anew
		case err == nil && (back || now.rev < l.view.rev): // this node has written meanwhile
			l.dirty = true
			return
		}
		l.onRead(now, err)
	})
}

// errStale is what etcd should never give cause for, and has: https://github.com/etcd-io/etcd/issues/20418.
var errStale = errors.New("etcd has answered with an older state than before")

func (l *loop) onRead(now *view, err error) {
	if err != nil {
		l.dirty = true
		l.onFailure(err)
		return
	}
	for _, bad := range now.newlyBad(&l.view.nodeTable) {
		l.config.Log.Warn("cannot be read", "error", bad)
	}
	if !l.outage.IsZero() {
		if l.warnedOf.Equal(l.outage) {
			l.config.Log.Info("etcd can be used again", "after", time.Since(l.outage).Round(time.Millisecond))
		}
		l.usableAgain()
	}
	l.attempts.settle(now)
	l.view, l.readAt, l.outage, l.written = now, time.Now(), time.Time{}, false
	l.follow()
}
