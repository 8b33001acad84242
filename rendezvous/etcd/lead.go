package etcd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// tellPause is between two news for those who wait, for each thousand nodes and the first.
const tellPause = time.Second

// leads reports whether this node is the leader, as far as it knows.
func (l *loop) leads() bool {
	return l.lease.id != 0 && l.view.leader != nil && l.view.leader.Key == l.etcd.key && l.view.leaderLease == l.lease.id
}

// campaign makes this node the leader if there is none.
func (l *loop) campaign() {
	lease := l.lease.id
	if l.view.rev == 0 || l.view.leader != nil || lease == 0 || l.under != lease || l.written || l.forgotten || time.Now().Before(l.abstains) {
		return
	}
	self := leaderDoc{Key: l.etcd.key, Host: l.self.Node.Host, Door: l.agentAddr()}
	l.start(campaigning, func(ctx context.Context) error {
		return l.commit("campaign", func() error { return l.etcd.campaign(ctx, lease, self) })
	}, l.onWritten)
}

// onWritten: what has come of it is to be read before there is more to decide.
func (l *loop) onWritten(err error) {
	l.dirty, l.written = true, true
	if err != nil {
		l.onFailure(err)
	}
}

// lead does a leader's work.
func (l *loop) lead() {
	if !l.leads() || l.forgotten {
		l.becomeFollower()
		return
	}
	if l.unwatch == nil {
		l.becomeLeader()
	}
	switch v := l.view; {
	case !v.whole:
		l.dirty = true
	case l.written || l.requests[deciding]:
	case l.attempts.failing(1, l.config.patience()):
		l.stepDown()
	case l.uncertain():
		l.again = l.settled
		l.inform(rendezvous.Decision{
			Wait: fmt.Sprintf("etcd had lost the job: round %d is put back, and its nodes are waited for", v.current.Round),
			Then: "goes on without those that are missing", After: time.Until(l.settled),
		})
	case l.undecided():
		l.act(l.decide())
	}
}

// uncertain reports whether nodes that know more of a job that has been put back may not be here yet. Who is here has put back what
// it knows before; and of a round that follows a running one, one of its members would know. If all members are here, nobody is
// waited for any more.
func (l *loop) uncertain() bool {
	v := l.view
	if v.current == nil || !v.current.Restored || v.last == nil || !time.Now().Before(l.settled) {
		return false
	}
	missing := func(m rendezvous.Candidate) bool { return v.nodeRev[m.Key] == 0 }
	if v.current.Over != nil || slices.ContainsFunc(v.last.Members, missing) {
		return true
	}
	l.settled = time.Now()
	return false
}

// undecided reports whether there is something to decide from.
func (l *loop) undecided() bool {
	return l.decided != l.view || !l.again.IsZero() && !time.Now().Before(l.again)
}

func (l *loop) becomeLeader() {
	ctx, cancel := context.WithCancel(l.ctx)
	l.unwatch, l.stage, l.status, l.decided = cancel, rendezvous.Stage{}, "", nil
	l.others.Go(func() {
		watch(ctx, l.config.Client, l.etcd.keys.nodes(), clientv3.GetPrefixRangeEnd(l.etcd.keys.rounds()), l.onChange)
	})
	l.config.Log.Debug("this node leads")
}

// becomeFollower stops what becomeLeader has started.
func (l *loop) becomeFollower() {
	if l.unwatch != nil {
		l.unwatch()
		l.unwatch, l.again, l.attempts = nil, time.Time{}, attempts{}
	}
}

// keep renews the lease of what is written of the job, which goes some time after its last leader. A round that has run for as long
// makes the job an established one.
func (l *loop) keep() {
	lease := l.view.config.lease
	if l.unwatch == nil || lease == 0 || time.Now().Before(l.keepAt) {
		return
	}
	v := l.view
	lasts := v.last != nil && !v.established && l.age(v.last.ID, time.Now()) >= l.config.keep()
	l.start(keeping, func(ctx context.Context) error {
		_, err := l.config.Client.KeepAliveOnce(ctx, lease)
		if err == nil && lasts {
			err = l.etcd.establish(ctx, v)
		}
		return err
	}, func(err error) {
		switch {
		case err == nil:
			l.keepAt = time.Now().Add(l.config.TTL)
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			l.dirty, l.keepAt = true, time.Now().Add(retryPause) // the job is put back under another
		default:
			l.onFailure(err)
		}
	})
}

// decide asks what follows from the newest view, at this time.
func (l *loop) decide() rendezvous.Decision {
	v, now := l.view, time.Now()
	l.decided = v
	l.waitForMore(now)
	s := rendezvous.State{
		Rules: l.config.rules(), Nodes: l.withTies(v.nodes), Reports: v.reports, Unreachable: v.unreachable(),
		Settled: !now.Before(l.settled), Stage: l.stage, Waited: now.Sub(l.since),
	}
	if v.last != nil {
		s.Last, s.Age = v.last, l.age(v.last.ID, now)
		if over := v.current.Over; over != nil {
			s.Over = &rendezvous.Ending{Why: over.Why, Restarts: over.Restarts, Lost: over.Lost, Soon: over.Soon, Apart: over.Apart}
		}
	}
	d := rendezvous.Form(s)
	if d.Stage != l.stage {
		l.stage, l.since = d.Stage, now
	}
	l.again = time.Time{}
	if d.After > 0 {
		l.again = now.Add(d.After)
	}
	if !s.Settled && (l.again.IsZero() || l.settled.Before(l.again)) {
		l.again = l.settled
	}
	return d
}

// unsettle gives absent nodes some time to come back, as this one does.
func (l *loop) unsettle(d time.Duration) {
	if until := time.Now().Add(d + l.config.TTL + retryPause); until.After(l.settled) {
		l.settled = until
	}
	l.back = 0
}

// waitForMore gives the other members of the round more time whenever one of them has come back.
func (l *loop) waitForMore(now time.Time) {
	if l.view.last == nil || !now.Before(l.settled) {
		return
	}
	back := 0
	for _, m := range l.view.last.Members {
		if l.view.nodeRev[m.Key] > 0 {
			back++
		}
	}
	if back > l.back {
		l.unsettle(0)
		l.back = back
	}
}

// age is how long this node has known the round as its leader.
func (l *loop) age(round int, now time.Time) time.Duration {
	if l.led != round {
		l.led, l.ledSince = round, now
	}
	return now.Sub(l.ledSince)
}

// act writes a decision down.
func (l *loop) act(d rendezvous.Decision) {
	v := l.view
	var point string
	var write func(context.Context) error
	switch {
	case d.Close != nil:
		point, write = "close", func(ctx context.Context) error { return l.etcd.close(ctx, v, *d.Close) }
	case d.Over != nil:
		point, write = "end", func(ctx context.Context) error { return l.etcd.end(ctx, v, *d.Over) }
	case d.Form != nil:
		point, write = "form", func(ctx context.Context) error { return l.etcd.form(ctx, v, *d.Form, newToken()) }
	case d.Probe && v.probe != v.current.Round:
		l.start(deciding, func(ctx context.Context) error { return l.etcd.probe(ctx, v) }, l.onWritten)
		return
	default:
		l.attempts = attempts{}
		l.inform(d)
		return
	}
	l.attempts.begin(v)
	l.start(deciding, func(ctx context.Context) error {
		return l.commit(point, func() error { return write(ctx) })
	}, l.onWritten)
}

// inform lets those who wait know what for.
func (l *loop) inform(d rendezvous.Decision) {
	if d.Wait == l.status {
		return
	}
	v := l.view
	l.start(telling, func(ctx context.Context) error {
		err := l.etcd.tell(ctx, v, d.Reason())
		pause(ctx, tellPause*time.Duration(1+len(v.nodes)/1000))
		return err
	}, func(err error) {
		l.decided = nil // there may be more to tell
		if err == nil {
			l.status = d.Wait
		}
	})
}

// commit makes a write of the leader's.
func (l *loop) commit(point string, write func() error) error {
	if l.config.fault("before " + point) {
		l.cancel()
		return l.ctx.Err()
	}
	err := write()
	if l.config.fault("after " + point) {
		l.cancel()
	}
	return err
}

// newToken is 256 random bits.
func newToken() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return hex.EncodeToString(secret)
}
