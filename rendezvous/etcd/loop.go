package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/tie"
)

const (
	recheck = 30 * time.Second      // the job is read that often though nothing seems to have changed
	breath  = 10 * time.Microsecond // for each node, between two reads of a leader
)

// A loop owns the state of one node. What comes from outside it comes as a function, which it calls; requests to etcd
// run beside it, one of each kind at a time, and come back in the same way. After every one, step compares what is
// with what should be and starts what is missing, so that a request that has failed is only one to be made again.
type loop struct {
	config *Config
	etcd   writer
	ctx    context.Context // ends everything that the loop has started
	cancel context.CancelFunc
	others sync.WaitGroup
	events chan func()
	done   chan struct{} // the loop has ended

	// The rest is the loop's own, until it has ended.
	closed    error // wraps ErrClosed; nil: the job is open
	lease     leaseState
	settled   time.Time // until then absent nodes may only have been cut off, as this one was
	back      int       // members of the round that are not, or not any more
	view      *view     // the newest
	past      *view     // the newest that has a round of this job; nil: none has
	forgotten bool      // etcd has lost some of that
	unwatched func()    // ends the watch of the job
	dirty     bool      // there may be news since
	readAt    time.Time // of view
	outage    time.Time // since when etcd cannot be used; zero: it can
	warnedOf  time.Time // the last outage that has been logged
	usable    time.Time // since when it can
	trouble   error     // why, as far as is known
	complaint string    // the last one that was logged
	requests  map[request]bool

	// Of this node:
	joins      []*join        // that wait; the first is the one that self says
	self       nodeDoc        // what etcd should know
	registered int            // self.Try that it knows of
	nodeRev    int64          // at which that was written
	claimed    []unreachedDoc // self.Unreached that it knows of
	under      clientv3.LeaseID
	job        string   // configDoc.Job of the one that this node is in; empty: none
	refused    bool     // there is no place for the node in the job
	taken      taken    // what is known of another node that has its rank
	secret     string   // by which the agents of the job know each other
	end        *tie.End // nil: no Join has waited yet
	tiedTo     int64    // view.leaderRev; 0: to none
	untie      context.CancelFunc
	ended      map[string]string // agents that are no more: where they answered, by their keys
	calling    *calling          // nil: rank 0's agent is not
	peers      map[string]*peer
	warned     bool   // people have been warned of one that could never be reached
	confirming int    // calls of confirm that are under way
	probing    bool   // a probe is under way
	probed     int    // the last round for which this node has probed
	toldProbed int    // self.Probed that etcd knows of
	met        string // key of the last agent that was called there, and has answered
	round      *membership
	reporting  *reporting
	told       string // of what a Join waits for

	// Of the leader:
	unwatch context.CancelFunc // nil: this is not the leader
	stage   rendezvous.Stage
	since   time.Time // of stage
	decided *view     // what the last decision went by
	written bool      // something, since view
	again   time.Time // to look again then; zero: on news
	status  string    // what the others have been told

	attempts attempts
	abstains time.Time // until then it does not stand for leader
	keepAt   time.Time // when the job's lease is to be renewed
	led      int       // the last round that it has led
	ledSince time.Time
}

// A request is a kind of request.
type request int

const (
	reading request = iota
	registering
	campaigning
	deciding
	telling
	recording
	evicting
	explaining
	restoring
	keeping
	dating
)

func startLoop(c *Config, key string) *loop {
	l := &loop{
		config: c, etcd: writer{client: c.Client, keys: keysOf(c.Prefix, c.RunID), key: key},
		events: make(chan func()), done: make(chan struct{}),
		view: new(view), readAt: time.Now(), requests: make(map[request]bool), peers: make(map[string]*peer), secret: newToken(),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.rewatch()
	go l.run()
	l.others.Go(func() {
		keepLease(l.ctx, c.Client, c.TTL, l.turn, func(s leaseState) { l.post(func() { l.onLease(s) }) })
	})
	return l
}

// rewatch watches the job anew, from now on. If etcd has gone back, a watch that waits for a later revision hears nothing.
func (l *loop) rewatch() {
	if l.unwatched != nil {
		l.unwatched()
	}
	ctx, cancel := context.WithCancel(l.ctx)
	l.unwatched = cancel
	k := l.etcd.keys
	l.others.Go(func() {
		watch(ctx, l.config.Client, k.job(), clientv3.GetPrefixRangeEnd(k.job()), func(events []*clientv3.Event) {
			l.post(func() { l.onEvents(events) })
		})
	})
}

// post has the loop call f. It reports whether the loop will.
func (l *loop) post(f func()) bool {
	select {
	case l.events <- f:
		return true
	case <-l.done:
		return false
	}
}

func (l *loop) run() {
	defer close(l.done)
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	for l.ctx.Err() == nil {
		l.step()
		timer.Reset(l.rest())
		select {
		case <-l.ctx.Done():
		case f := <-l.events:
			f()
		case <-timer.C:
		}
	}
	l.finish(rendezvous.ErrClosed)
}

// step starts what is missing.
func (l *loop) step() {
	if l.closed != nil {
		return
	}
	l.restore()
	l.probe()
	l.enrol()
	l.campaign()
	l.lead()
	l.keep()
	l.hold()
	l.evict()
	l.record()
	l.read()
}

// rest is how long nothing is to be done if there is no news.
func (l *loop) rest() time.Duration {
	rest := recheck
	if l.closed != nil {
		return rest
	}
	if !l.requests[reading] {
		rest = time.Until(l.nextRead())
	}
	if !l.again.IsZero() && !l.written && !l.requests[deciding] {
		rest = min(rest, time.Until(l.again))
	}
	if l.view.leader == nil && time.Now().Before(l.abstains) {
		rest = min(rest, time.Until(l.abstains))
	}
	if l.unwatch != nil && !l.requests[keeping] {
		rest = min(rest, time.Until(l.keepAt))
	}
	return max(rest, time.Millisecond)
}

// start makes a request, unless one of the kind is being made. then is called by the loop; if the request has failed,
// after a pause.
func (l *loop) start(kind request, call func(context.Context) error, then func(error)) {
	if l.requests[kind] {
		return
	}
	l.requests[kind] = true
	l.others.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, callTimeout)
		err := call(ctx)
		cancel()
		if err != nil {
			pause(l.ctx, retryPause)
		}
		l.post(func() {
			delete(l.requests, kind)
			if l.closed == nil {
				then(err)
			}
		})
	})
}

func (l *loop) onLease(s leaseState) {
	switch {
	case s.err != nil:
		l.onOutage(s.err)
	case l.lease.err != nil || l.lease.id != 0:
		// Whatever cut this node off may have cut off the others, who are coming back as well.
		l.dirty = true
		l.unsettle(0)
	}
	if s.id != l.lease.id {
		l.config.Log.Debug("lease", "now", s.id, "before", l.lease.id)
	}
	l.lease = s
}

// leave ends the loop and takes the node out of the job.
func (l *loop) leave(ctx context.Context, why error) error {
	round := 0
	l.post(func() {
		round = l.leaves()
		closed := rendezvous.ErrClosed
		if why != nil {
			closed = &rendezvous.ClosedError{Outcome: rendezvous.OutcomeOf(why)}
		}
		l.finish(closed)
		l.cancel()
	})
	<-l.done
	l.others.Wait()
	if l.end != nil {
		defer l.end.Close() // not before etcd has been told: this is no agent that has been killed
	}
	if l.lease.id == 0 {
		return nil
	}
	limit := callTimeout
	futile := l.view.state != nil || !l.outage.IsZero() // nobody waits for it, or nobody hears it
	if futile {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := l.etcd.leave(ctx, l.view, l.lease.id, round, why)
	unknown := l.under == 0 && isRefusal(err)
	if err == nil || futile || unknown {
		return nil
	}
	return fmt.Errorf("etcd: this node is known for up to %v more: %w", l.config.TTL, err)
}
