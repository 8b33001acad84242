package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// publishInterval is between two news for those who wait, for each thousand nodes and the first.
const publishInterval = time.Second

// A leader is this node's part in leading the job. Every node has one. While another node leads, it does nothing but watch for a reason
// to campaign.
type leader struct {
	*common
	conn   *connection
	member *member

	leading  bool
	attempts attempts
	abstains time.Time // until then it does not campaign
	written  bool      // something has been written since the view was read

	decided  *view // what the last decision went by
	stage    rendezvous.Stage
	since    time.Time // of stage
	decideAt time.Time // to decide again then; zero: on news
	status   string    // that was published last

	settled  time.Time // until then absent nodes may only have been cut off, as this one was
	returned int       // members of the round that have come back since

	retainAt time.Time // when the job's lease is to be renewed
	led      int       // the last round that it has led
	ledSince time.Time

	connected map[string]int // liveness connections from others, by their keys
}

// leads reports whether this node is the leader, as far as it knows.
func (l *leader) leads() bool {
	v := l.conn.view
	return l.conn.lease != 0 && v.leader != nil && v.leader.Key == l.key && v.leaderLease == l.conn.lease
}

// campaign makes this node the leader if there is none.
func (l *leader) campaign() {
	v, lease := l.conn.view, l.conn.lease
	if v.ownRev == 0 || v.leader != nil || lease == 0 || l.member.enrolledLease != lease || l.written || l.now.Before(l.abstains) {
		return
	}
	self := l.member.self
	agent := address(self.Node.Reach(), self.AgentPort)
	l.request(campaigning, &campaign{lease, leaderDoc{Key: l.key, Host: self.Node.Host, Agent: agent}})
}

// campaign makes this node the leader if there is none, and the job has this node.
type campaign struct {
	lease store.Lease
	self  leaderDoc
}

func (r *campaign) do(ctx context.Context, x *executor) error {
	leader := x.keys.leader()
	return x.when(isMissing(leader), isLeased(x.keys.node(x.key), r.lease)).put(leader, r.self, r.lease).try(ctx)
}

func (*campaign) done(m *stateMachine, err error) { m.onWritten(err) }

// onWritten makes the leader read what has come of its write before it decides again.
func (m *stateMachine) onWritten(err error) {
	m.conn.dirty, m.leader.written = true, true
	if err != nil {
		m.onFailure(err)
	}
}

// lead does a leader's work.
func (l *leader) lead() {
	if !l.leads() {
		l.becomeFollower()
		return
	}
	if !l.leading {
		l.leading, l.stage, l.status, l.decided = true, rendezvous.Stage{}, "", nil
		l.emit(start{"nodes", watchNodes{}})
		l.log(slog.LevelDebug, "this node leads")
	}
	switch v := l.conn.view; {
	case !v.whole:
		l.conn.dirty = true
	case l.written || l.pending[deciding]:
	case l.attempts.failing(1, l.config.failureTimeout(), l.now):
		l.stepDown()
	case l.decided != v || !l.decideAt.IsZero() && !l.now.Before(l.decideAt) && !l.conn.unread(): // there is something to decide from
		l.act(l.decide())
	}
}

func (l *leader) becomeFollower() {
	if l.leading {
		l.emit(stop{"nodes"})
		l.leading, l.decideAt, l.attempts = false, time.Time{}, attempts{}
	}
}

// retain renews the lease of the job's keys. So the store keeps them until some time after the last leader has gone.
func (l *leader) retain() {
	v := l.conn.view
	if !l.leading || v.config.lease == 0 || l.now.Before(l.retainAt) {
		return
	}
	l.request(retaining, &retainJob{v.config.lease, l.config.retention()})
}

// retainJob renews the lease of what is written of the job.
type retainJob struct {
	lease     store.Lease
	retention time.Duration
}

func (r *retainJob) do(ctx context.Context, x *executor) error {
	_, _, err := x.store.Keep(ctx, r.lease, r.retention)
	return err
}

func (*retainJob) done(m *stateMachine, err error) {
	l := &m.leader
	switch {
	case err == nil:
		l.retainAt = m.now.Add(m.config.Lease)
	case isLeaseLost(err):
		m.conn.dirty, l.retainAt = true, m.now.Add(retryInterval) // the store has lost the job
	default:
		m.onFailure(err)
	}
}

// decide asks what follows from the newest view, at this time.
func (l *leader) decide() rendezvous.Decision {
	v := l.conn.view
	l.decided = v
	l.waitForMore()
	s := rendezvous.State{
		Rules: l.config.Rules, Reports: v.reports, Settled: l.conn.leaseErr == nil && !l.now.Before(l.settled), Stage: l.stage, Waited: l.now.Sub(l.since),
	}
	s.Min, s.Max = v.nodeLimits(l.config)
	s.Nodes, s.Unreachable = v.candidates()
	for i, n := range s.Nodes { // only a lease shows of nodes without a liveness connection to this one whether they have ended
		s.Nodes[i].LeaseOnly = n.Key != l.key && l.connected[n.Key] == 0
	}
	if v.formed != nil {
		s.Last, s.Age, s.Over = v.formed, l.age(v.formed.ID), v.current.Over
	}
	d := rendezvous.Form(s)
	l.emit(logDecision{rendezvous.Record{State: s, Decision: d}})
	if d.Stage != l.stage {
		l.stage, l.since = d.Stage, l.now
	}
	l.decideAt = time.Time{}
	if d.After > 0 {
		l.decideAt = l.now.Add(d.After)
	}
	if !s.Settled && (l.decideAt.IsZero() || l.settled.Before(l.decideAt)) {
		l.decideAt = l.settled
	}
	return d
}

// unsettle gives absent nodes some time to come back, as this one does.
func (l *leader) unsettle() {
	if until := l.now.Add(l.config.Lease + retryInterval); until.After(l.settled) {
		l.settled = until
	}
	l.returned = 0
}

// waitForMore gives the other members of the round more time whenever one of them has come back.
func (l *leader) waitForMore() {
	v := l.conn.view
	if v.formed == nil || !l.now.Before(l.settled) {
		return
	}
	if returned := v.membersHere(); returned > l.returned {
		l.unsettle()
		l.returned = returned
	}
}

// age is how long this node has known the round as its leader.
func (l *leader) age(round int) time.Duration {
	if l.led != round {
		l.led, l.ledSince = round, l.now
	}
	return l.now.Sub(l.ledSince)
}

// act has a decision written.
func (l *leader) act(d rendezvous.Decision) {
	v := l.conn.view
	switch {
	case d.Close != nil || d.Over != nil || d.Form != nil:
		l.attempts.pending = v
		l.request(deciding, &writeDecision{v, d, l.now})
	default:
		if d.Stage.For == rendezvous.News { // not on the way to the next attempt
			l.attempts = attempts{}
		}
		l.publish(d)
	}
}

// writeDecision writes what rendezvous.Form has decided.
type writeDecision struct {
	view     *view
	decision rendezvous.Decision
	at       time.Time
}

func (r *writeDecision) do(ctx context.Context, x *executor) error {
	switch d := r.decision; {
	case d.Close != nil:
		return x.close(ctx, r.view, *d.Close, r.at)
	case d.Over != nil:
		current := *r.view.current
		current.Over = d.Over
		return x.asLeader(r.view).put(x.keys.current(), current, r.view.config.lease).try(ctx)
	default:
		return x.form(ctx, r.view, *d.Form, x.newToken())
	}
}

func (*writeDecision) done(m *stateMachine, err error) { m.onWritten(err) }

// publish lets those who wait know what for.
func (l *leader) publish(d rendezvous.Decision) {
	if d.Wait != l.status {
		l.request(publishing, &publishStatus{l.conn.view, d.Wait, d.Reason()})
	}
}

// publishStatus writes what the job waits for. It takes a while, so that there is not too much news.
type publishStatus struct {
	view         *view
	wait, reason string
}

func (r *publishStatus) do(ctx context.Context, x *executor) error {
	err := x.asLeader(r.view).put(x.keys.status(), statusDoc{r.reason}, r.view.config.lease).try(ctx)
	x.pause(ctx, publishInterval*time.Duration(1+len(r.view.nodes)/1000))
	return err
}

func (r *publishStatus) done(m *stateMachine, err error) {
	if m.leader.leading { // there may be more to publish
		m.leader.decideAt = m.now
	}
	if err == nil {
		m.leader.status = r.wait
	}
}
