package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// An etcd may lose a job: it comes back empty, or as it was long ago, or all agents were cut off for so long that their leases have run
// out. The agents still know the job. Each puts back what it read last, which is the same for all of them. If they know different
// rounds, the later one wins.
//
// Meanwhile other nodes may have found an empty etcd, and begun another job with the same run ID. That job gives way unless it is
// established: its nodes become newcomers of the job that is put back, whose workers go on. A job that has been put back counts as
// established, so it never gives way in turn. If both jobs are established, there were two etcds: the nodes that find the
// other job in their etcd close theirs.

// A comparison says how what is read of a job compares with what was read before.
type comparison int

const (
	intact   comparison = iota // it is what is known, or later
	lost                       // some of what is known is missing, or not yet told: it is to be put back
	replaced                   // there is another job, to which this one gives way
	disputed                   // there is another job, and neither gives way; or another round has the same number
)

// compare says what has become of the job with that ID, of which past was read last; nil: no round of it.
func (v *view) compare(job string, past *view) comparison {
	switch {
	case job == "":
		return intact
	case v.state != nil && v.state.Job == job:
		return intact
	case v.state == nil && v.config.Job == job:
		return v.compareRounds(past)
	case past == nil: // the job had not begun
		return replaced
	case v.state == nil && (v.config.Job == "" || !v.established), v.state != nil && !v.state.Established:
		return lost
	case past.established:
		return disputed
	default:
		return replaced
	}
}

// compareRounds is compare where etcd has the job.
func (v *view) compareRounds(past *view) comparison {
	if past == nil {
		return intact
	}
	now, then := v.current, past.current
	switch {
	case now == nil:
		return lost
	case now.Round > then.Round:
		return intact
	case now.Round < then.Round:
		return lost
	case now.ID != then.ID:
		return disputed
	case now.Over == nil && then.Over != nil, v.round == nil && past.round != nil:
		return lost
	}
	return intact
}

// reconcile makes the newest view that of this node's job, if it is. Otherwise the job is put back, or is over. It reports whether
// this node can go by the view.
func (m *stateMachine) reconcile() bool {
	c := &m.conn
	v := c.view
	if _, member := v.assignment(m.key); member && c.job == "" { // this node does not know yet that it has enrolled
		c.job = v.config.Job
	}
	switch v.compare(c.job, c.past) {
	case disputed:
		m.finish(&rendezvous.ClosedError{Outcome: rendezvous.Outcome{
			Code:   rendezvous.CodeUnformed,
			Reason: fmt.Sprintf("etcd has lost this job, and has another one named %q: choose another run ID for one of them", m.config.RunID),
		}})
		return false
	case lost:
		if !c.lost {
			m.log(slog.LevelWarn, "etcd has lost what it knew about the job; this node restores what it knows", "round", c.past.current.Round)
			m.watchJob() // if etcd has gone back, the old watch waits for a revision far ahead
		}
		c.lost = true
		return false
	case replaced:
		m.startOver()
		return true
	case intact:
	}
	if c.lost {
		c.lost = false
		m.member.enrolAgain()
	}
	if c.job == "" || v.current == nil {
		return true
	}
	if v.isPutBack(c.past) {
		m.leader.unsettle(noticeTime)
		m.log(slog.LevelInfo, "the job is put back", "round", v.current.Round, "waits_for_missing_nodes", m.leader.settled.Sub(m.now).Round(100*time.Millisecond))
	}
	c.past = v
	return true
}

// isPutBack reports whether the round has been put back since past was read (nil: nothing was). While a round runs, job/current is
// written for nothing else.
func (v *view) isPutBack(past *view) bool {
	switch {
	case !v.current.Restored:
		return false
	case past == nil || past.current.Round != v.current.Round || !past.current.Restored || past.config.lease != v.config.lease:
		return true
	}
	return v.current.Over == nil && past.currentRev != v.currentRev
}

// noticeTime is how long it takes until every node that reaches etcd has found out that etcd has lost something: a pause before
// grpc connects again, and some requests.
const noticeTime = 2 * time.Second

// startOver makes this node a newcomer of the job that etcd has.
func (m *stateMachine) startOver() {
	if m.conn.past != nil {
		m.log(slog.LevelWarn, "etcd had lost another job of this name, and its nodes have restored it: this node joins that job as a newcomer")
	}
	m.conn.job, m.conn.past, m.conn.lost = "", nil, false
	m.member.startOver()
}

// restore puts the job back.
func (m *stateMachine) restore() {
	if c := &m.conn; c.lost && c.lease != 0 && !c.stale {
		m.request(restoring, &restoreJob{enrolment{lease: c.lease, self: m.member.self, retention: m.config.retention()}, c.view, c.past})
	}
}

// restoreJob writes what past has and now lacks, if etcd has not changed since now was read. A job that is put back as a whole comes
// with this node, or it would look as if all of its nodes were gone.
type restoreJob struct {
	enrolment
	now, past *view
}

func (r *restoreJob) do(ctx context.Context, x *executor) error {
	now, past := r.now, r.past
	lease := now.config.lease
	other := now.config.Job != past.config.Job // etcd has another job, or none
	if other {
		granted, err := x.client.Grant(ctx, seconds(r.retention))
		if err != nil {
			return err
		}
		lease = granted.ID
	}
	k := x.keys
	t := x.when(append(x.isStill(now.config), isAt(k.current(), now.currentRev), isAt(k.state(), now.stateRev))...)
	if other {
		t.put(k.config(), past.config.configDoc, lease)
	}
	if other || now.current == nil || now.current.Round != past.current.Round || now.current.Over == nil && past.current.Over != nil {
		doc := *past.current
		doc.Restored = true
		t.put(k.current(), doc, lease)
	}
	if other || !now.established {
		t.put(k.established(), nil, lease)
	}
	if past.limits != nil && now.limits == nil {
		t.put(k.limits(), past.limits, lease)
	}
	if past.round != nil && past.round.ID == past.current.Round {
		t.put(k.round(past.round.ID, initial(x.key)), past.round, lease)
	}
	switch {
	case other: // the other job goes; its nodes find out
		t.putNode(r.enrolment).deleteOthers(k.root)
	case now.current != nil && now.current.Round != past.current.Round:
		t.deleteBelow(k.roundOf(now.current.Round))
	}
	answer, err := t.orGet(clientv3.OpGet(k.config())).commit(ctx)
	if !other || err != nil || answer.Succeeded || leaseOf(onlyKey(answer.Responses[0])) == lease {
		return err // if it is not known whether that was written, the lease is kept: it runs out unless it was
	}
	return x.revoke(ctx, lease)
}

func (*restoreJob) done(m *stateMachine, err error) {
	m.conn.dirty = true
	if m.conn.stale = err == nil; err != nil {
		m.onFailure(err)
	}
}
