package node

import (
	"errors"
	"log/slog"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// A stateMachine decides for one node. It has no clock, goroutine, I/O or logger. Step takes one event and returns what to do about it.
//
// It has three parts. Each has its own state, and asks only those below it:
//
//	leader        campaigns, decides by rendezvous.Form, writes decisions, steps down
//	  │
//	member        this node in the job: enrolment, Joins, its round, its report, its peers
//	  │
//	connection    the lease, outages of the store, the view: what the store has said last of the job
//
// An event is taken in by its apply, and the answer to a request by the request's done. Both may change several parts, and stand with the
// part that they are about, or in this file if they are about all. After each event, advance compares what is with what should be, and
// requests what is missing. So there is no other retry: a request that has failed is missing again.
type stateMachine struct {
	*common
	conn   connection
	member member
	leader leader
}

// common is what the parts share: who this node is, and the event that is under way.
type common struct {
	config *Config
	keys   keys
	key    string // of this node

	now     time.Time
	actions []action
	pending map[kind]bool // requests that are under way
	closed  error         // wraps ErrClosed; nil: the job is open
}

func newStateMachine(c *Config, key, secret string, now time.Time) *stateMachine {
	shared := &common{config: c, keys: keysOf(c.Prefix, c.RunID), key: key, now: now, pending: make(map[kind]bool)}
	m := &stateMachine{common: shared}
	m.conn = connection{common: shared, ttl: c.Lease, renewAt: now, view: new(view), readAt: now, need: c.Min}
	m.member = member{common: shared, conn: &m.conn, secret: secret, peers: make(map[string]*peer), ended: make(map[string]string)}
	m.leader = leader{common: shared, conn: &m.conn, member: &m.member, connected: make(map[string]int)}
	return m
}

// Step takes an event, at a time that is not before that of the last one. It returns what to do, in order.
func (m *stateMachine) Step(now time.Time, e event) []action {
	m.now = now
	a, answers := e.(answered)
	if answers {
		delete(m.pending, a.kind)
	}
	if !answers || m.closed == nil || a.kind == leasing {
		e.apply(m)
	}
	m.advance()
	all := m.actions
	m.actions = nil
	return all
}

// advance requests what is missing. A node whose job is closed keeps its lease until it leaves.
func (m *stateMachine) advance() {
	m.conn.keepLease(m.leader.mayLive())
	if m.closed != nil {
		return
	}
	if m.conn.lost {
		m.goOnAlone()
		m.conn.read(false)
		return
	}
	m.member.enrol()
	m.leader.campaign()
	m.leader.lead()
	m.leader.retain()
	m.member.monitorLeader()
	m.evict()
	m.member.record()
	m.conn.read(m.leader.leads())
}

// wake is when Step wants to be called though nothing happens.
func (m *stateMachine) wake() time.Time {
	wake := m.now.Add(recheck)
	sooner := func(is bool, at time.Time) {
		if is && at.Before(wake) {
			wake = at
		}
	}
	sooner(!m.pending[leasing], m.conn.renewAt)
	if m.closed == nil {
		sooner(!m.pending[reading], m.conn.nextRead())
		sooner(!m.leader.decideAt.IsZero() && !m.leader.written && !m.pending[deciding] && !m.conn.unread(), m.leader.decideAt)
		sooner(m.conn.view.leader == nil && m.now.Before(m.leader.abstains), m.leader.abstains)
		sooner(m.leader.leading && !m.pending[retaining], m.leader.retainAt)
	}
	if soonest := m.now.Add(time.Millisecond); wake.Before(soonest) {
		return soonest
	}
	return wake
}

func (c *common) emit(a action) { c.actions = append(c.actions, a) }

// request makes a request, unless one of that kind is under way.
func (c *common) request(k kind, r request) {
	if !c.pending[k] {
		c.pending[k] = true
		c.emit(asked{k, r})
	}
}

// watchJob watches job/, perhaps anew.
func (c *common) watchJob() { c.emit(start{"job", watchJob{}}) }

func (c *common) log(level slog.Level, text string, args ...any) { c.emit(logLine{level, text, args}) }

func (begun) apply(m *stateMachine) { m.watchJob() }

func (ticked) apply(*stateMachine) {}

// finish closes the job on this node.
func (m *stateMachine) finish(why error) {
	if m.closed != nil {
		return
	}
	m.closed = why
	m.member.endRound(why)
	m.member.fail(why)
	m.leader.becomeFollower()
}

func (e leaveCalled) apply(m *stateMachine) {
	round, report := m.member.leaves(e.why)
	leave := leaveJob{
		view: m.conn.view, lease: m.conn.lease, round: round, report: report,
		refused: m.member.refused,
		futile:  m.conn.view.state != nil || m.conn.isAway(), unknown: m.member.enrolledLease == 0,
		lost: m.conn.lost,
	}
	if m.conn.lost && m.closed == nil && m.member.round > 0 {
		leave.saysLost = m.lostFor(m.member.self.Node.Name() + " has left")
	}
	closed := rendezvous.ErrClosed
	if e.why != nil {
		outcome := rendezvous.OutcomeOf(e.why)
		closed = &rendezvous.ClosedError{Outcome: outcome}
		if m.config.Hosts && m.conn.view.current == nil { // others who wait, or come later, wait for a round that cannot form
			leave.ends = &stateDoc{Outcome: outcome, At: m.now}
		}
	}
	m.finish(closed)
	m.emit(leave)
}

func (e jobChanged) apply(m *stateMachine) {
	if m.conn.onEvents(e.events) {
		m.follow()
	}
}

func (nodesChanged) apply(m *stateMachine) { m.conn.dirty = true }

func (r *readJob) done(m *stateMachine, err error) {
	c := &m.conn
	switch {
	case err != nil:
		c.dirty, c.doubt = true, r.anew
		m.onFailure(err)
		return
	case r.lostHistory && c.view == r.before:
		c.seen = 0
		m.member.enrolAgain()
		m.watchJob()
		m.leader.becomeFollower() // and a leader begins the watch of its own anew
	case r.lostHistory || r.now.rev < c.view.rev: // this node has written meanwhile
		c.dirty, c.doubt = true, r.anew
		return
	}
	for _, bad := range r.now.newlyBad(&c.view.nodeTable) {
		m.log(slog.LevelWarn, "cannot be read", "error", bad)
	}
	if c.isAway() {
		c.onUsable()
		m.member.onUsable()
	}
	if m.member.isUnknown(r.now) {
		m.member.enrolAgain()
	}
	if failed := m.leader.attempts.resolve(r.now, m.now); failed && !r.anew {
		c.dirty, c.doubt = true, true
	}
	m.leader.written, c.stale = c.doubt, false
	c.view, c.readAt, c.seen = r.now, m.now, max(c.seen, r.now.rev)
	m.follow()
}

// follow does what the newest view says.
func (m *stateMachine) follow() {
	if !m.reconcile() {
		return
	}
	v := m.conn.view
	if v.state != nil && m.conn.job == "" {
		m.tooLate(v)
		return
	}
	if v.state != nil {
		m.finish(&rendezvous.ClosedError{Outcome: v.state.Outcome})
		return
	}
	m.conn.showNeed()
	m.member.follow(v)
}

// onFailure takes the error of a request. If no retry can help, it fails the Joins that wait; otherwise they go on waiting.
func (m *stateMachine) onFailure(err error) {
	switch _, unreadable := errors.AsType[*DocumentError](err); {
	case unreadable:
	case isLeaseLost(err): // a new lease comes
		m.conn.dirty = true
		return
	case isRefusal(err):
	default:
		m.onOutage(err)
		return
	}
	if len(m.member.joins) == 0 && err.Error() != m.conn.complaint { // otherwise their callers say it
		m.conn.complaint = err.Error()
		m.log(slog.LevelWarn, "rendezvous", "error", err)
	}
	m.member.fail(&rendezvous.MisuseError{Err: err})
}

func (m *stateMachine) onOutage(err error) {
	lasted, err := m.conn.onOutage(err)
	if lasted >= m.config.JoinTimeout {
		m.member.fail(err)
	}
	if m.closed == nil && lasted > callTimeout {
		m.member.show(err.Error())
	}
}
