package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/gorun/gorun/rendezvous/internal/store"
)

const (
	recheck      = 30 * time.Second      // the whole job is read that often though nothing seems to have changed
	readInterval = 10 * time.Microsecond // for each node, between two reads of a leader
)

// A connection is what this node knows of the store: its lease, whether the store can be used, and what the store has
// said last of the job.
//
// In an outage the store cannot be used. It begins when a request fails, or the lease cannot be kept alive. It ends
// with a read that succeeds.
type connection struct {
	*common

	lease    store.Lease // 0: none
	leaseErr error       // why it could not be granted or renewed; nil: all is well
	ttl      time.Duration
	renewAt  time.Time

	view   *view     // the newest
	readAt time.Time // of view
	dirty  bool      // there may be news since
	doubt  bool      // the view may be wrong, though nothing has changed since: all is read again
	seen   int64     // the highest revision that a request has found; one that begins later finds no lower one, unless the store has lost some of its history

	job   string // configDoc.Job of the one that this node is in; empty: none
	past  *view  // the newest that has a round of this job; nil: none has
	lost  bool   // the store has lost some of that, see goOnAlone
	stale bool   // what has come of the last request is to be read before there is another one

	need int // what has been shown; 0: it is to be shown again. At first, it is what the flags say

	outage    time.Time // since when the store cannot be used; zero: it can
	usable    time.Time // since when it can
	warnedOf  time.Time // the last outage that has been logged
	trouble   error     // why it cannot be used, as far as is known
	complaint string    // the last error that onFailure has logged
}

// keepLease renews the lease, or gets one. A lease is given up when the store says that it is gone, and not for
// silence: after an outage leases have their full time again. The lease says that the node does its work, so it is
// renewed by the same loop that does the work, and not while the node may not live.
func (c *connection) keepLease(mayLive bool) {
	switch {
	case c.pending[leasing] || c.now.Before(c.renewAt):
	case !mayLive:
		c.renewAt = c.now.Add(c.ttl / 6)
	default:
		c.request(leasing, &renewLease{lease: c.lease, ttl: c.ttl})
	}
}

// renewLease renews the lease, or asks for one if there is none.
type renewLease struct {
	lease store.Lease
	ttl   time.Duration
	lost  bool // the store does not know the lease any more
}

func (r *renewLease) do(ctx context.Context, x *executor) error {
	ctx, cancel := x.within(ctx, min(callTimeout, max(r.ttl*3/4, time.Second)))
	defer cancel()
	lease, ttl, err := x.store.Keep(ctx, r.lease, r.ttl)
	switch {
	case err == nil:
		r.lease, r.ttl = lease, ttl
	case isLeaseLost(err):
		r.lease, r.lost = 0, true
		return nil
	}
	return err
}

func (r *renewLease) done(m *stateMachine, err error) {
	c := &m.conn
	before, well := c.lease, c.leaseErr == nil
	c.lease, c.leaseErr, c.ttl, c.renewAt = r.lease, err, r.ttl, m.now
	if err == nil && !r.lost {
		c.renewAt = m.now.Add(c.ttl / 6)
	}
	switch {
	case err != nil:
		m.onOutage(err)
	case r.lost || !well:
		// Whatever cut this node off may have cut off the others, who are coming back as well.
		c.dirty = true
		m.leader.unsettle()
	}
	if c.lease != before {
		m.log(slog.LevelDebug, "lease", "now", c.lease, "before", before)
	}
}

// onEvents takes changes of the job. They cause a read, except those that decide nothing: what is for people, who
// leads, and the first settings of a job, which the store checks. It reports whether there is a newer view.
func (c *connection) onEvents(events []store.Event) (newer bool) {
	now, news, read := *c.view, false, len(events) == 0
	hints := []string{c.keys.status(), c.keys.leader(), c.keys.refusal()}
	if now.config.rev == 0 && now.current == nil {
		hints = append(hints, c.keys.config())
	}
	for _, e := range events {
		hint := !e.Deleted && slices.Contains(hints, e.Key)
		if e.Written > now.rev {
			news, read = true, read || !hint || now.job(c.keys, e.KV) != nil
		}
	}
	if read {
		c.dirty = true
		return false
	}
	if newer = news && now.rev > 0; newer {
		c.view = &now
	}
	return newer
}

// unread reports whether there may be news that this node has not read. A leader that decided because time has passed might not know of it.
func (c *connection) unread() bool { return c.dirty || c.pending[reading] }

// nextRead is when to read the job again. In a large job the leader waits a little between two reads, so that one read brings the
// changes of many nodes.
func (c *connection) nextRead() time.Time {
	if !c.dirty {
		return c.readAt.Add(recheck)
	}
	return c.readAt.Add(time.Duration(len(c.view.nodes)) * readInterval)
}

// read reads the job when it is time to.
func (c *connection) read(whole bool) {
	if !c.pending[reading] && !c.now.Before(c.nextRead()) {
		c.request(reading, &readJob{whole: whole, before: c.view, seen: c.seen, anew: c.doubt || !c.dirty})
		c.dirty, c.doubt = false, false
	}
}

// readJob reads what has changed since the view before. A leader reads all nodes and reports.
type readJob struct {
	whole  bool
	before *view
	seen   int64 // when it was made
	anew   bool  // also what has not changed: a store that has lost some of its history may have counted on since

	now         *view
	lostHistory bool // the store is older than what has been seen; now is all of the job
}

// do fails with errStale if the store has answered from a copy that has not caught up.
func (r *readJob) do(ctx context.Context, x *executor) (err error) {
	known := r.before
	if r.anew {
		known = new(view)
	}
	if r.now, err = read(ctx, &x.writer, r.whole, known); err != nil || r.now.rev >= r.seen {
		return err
	}
	rev, err := x.revision(ctx)
	switch {
	case err != nil:
		return err
	case rev >= r.seen:
		return errStale
	}
	r.lostHistory = true
	if r.now, err = read(ctx, &x.writer, r.whole, new(view)); err == nil && r.now.rev < rev {
		err = errStale
	}
	return err
}

// errStale is what etcd should never give cause for, and has: https://github.com/etcd-io/etcd/issues/20418.
var errStale = errors.New("etcd has answered with an older state than before")

// isAway reports whether the store cannot be used.
func (c *connection) isAway() bool { return !c.outage.IsZero() }

// onOutage returns for how long the store cannot be used, and why.
func (c *connection) onOutage(err error) (time.Duration, error) {
	if !c.isAway() {
		c.outage = c.now
		c.dirty = true // a read shows when it is over
		c.trouble = fmt.Errorf("%v: %w", c.config.Endpoints, err)
		c.request(explaining, &explainOutage{c.trouble})
	}
	return c.now.Sub(c.outage), fmt.Errorf("etcd cannot be used: %w", c.trouble)
}

// explainOutage finds out what is behind an error.
type explainOutage struct {
	why error // at first what a request has failed with
}

func (r *explainOutage) do(ctx context.Context, x *executor) error {
	r.why = cmp.Or(x.explain(ctx), r.why)
	return nil
}

// done logs a warning, unless the outage is over by now.
func (r *explainOutage) done(m *stateMachine, _ error) {
	c := &m.conn
	c.trouble = r.why
	if c.isAway() {
		c.warnedOf = c.outage
		c.log(slog.LevelWarn, fmt.Sprintf("etcd cannot be used: %v (rounds go on, but no new one can begin)", r.why))
	}
}

func (c *connection) onUsable() {
	if c.warnedOf.Equal(c.outage) {
		c.log(slog.LevelInfo, "etcd can be used again", "after", c.now.Sub(c.outage).Round(time.Millisecond))
	}
	c.outage, c.usable = time.Time{}, c.now
}

func isLeaseLost(err error) bool { return errors.Is(err, store.ErrNoLease) }

func isRefusal(err error) bool {
	_, is := errors.AsType[*store.RefusedError](err)
	return is
}
