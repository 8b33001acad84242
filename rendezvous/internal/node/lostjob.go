package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// A store may lose a job: it comes back empty, or as it was long ago, or no agent has reached it for longer than it
// keeps what it knows. Nothing is put back from memory. The workers of a round need no store, so they go on, and a
// node whose workers succeed has done its part. But nobody can decide anything else any more: the first member of the
// round that needs a decision ends the job, and says so in job/lost to the others. A spare ends at once. A job that
// has had no round begins anew.
//
// Meanwhile other nodes may begin another job of the same name. It has another configDoc.Job, and is none of the
// business of this one.

// hasLost reports whether what is read lacks something of the job with that ID, of which past was read last; nil: no
// round of it.
func (v *view) hasLost(job string, past *view) bool {
	switch {
	case job == "":
		return false
	case v.state != nil:
		return v.state.Job != job
	case v.config.Job != job:
		return true
	case past == nil:
		return false
	}
	now, then := v.current, past.current
	switch {
	case now == nil || now.Round < then.Round:
		return true
	case now.Round > then.Round:
		return false
	}
	return now.ID != then.ID || now.Over == nil && then.Over != nil || v.round == nil && past.round != nil
}

// reconcile reports whether this node can go by the newest view: it is of this node's job, of which nothing is lost.
func (m *stateMachine) reconcile() bool {
	c := &m.conn
	v := c.view
	if _, member := v.assignment(m.key); member && c.job == "" { // this node does not know yet that it has enrolled
		c.job = v.config.Job
	}
	switch {
	case c.job != "" && v.lost.Job == c.job:
		m.finish(&rendezvous.ClosedError{Outcome: v.lost.Outcome})
		return false
	case c.lost:
		return false
	case !v.hasLost(c.job, c.past):
		if c.job != "" && v.current != nil {
			c.past = v
		}
		return true
	case c.past == nil:
		c.job = ""
		m.member.startOver()
		return true
	}
	c.lost = true
	m.leader.becomeFollower()
	m.watchJob() // if the store has gone back, the old watch waits for a revision far ahead
	const text = "etcd has lost what it knew about the job: the workers go on, but no other round can follow"
	m.log(slog.LevelWarn, text, "round", c.past.current.Round)
	return false
}

// goOnAlone is what a node does whose job the store has lost.
func (m *stateMachine) goOnAlone() {
	switch b := &m.member; {
	case b.round == 0 || len(b.joins) > 0:
		m.endLost("this one needs another round")
	case b.report == nil:
	case b.report.doc == reportDoc{}:
		m.log(slog.LevelWarn, "the workers here have succeeded; etcd has lost the job, so it is not known how the others end")
		m.finish(&rendezvous.ClosedError{})
	default:
		m.endLost(b.report.doc.why(b.self.Node))
	}
}

// why says what a report that is no success means for the job.
func (d *reportDoc) why(node rendezvous.Node) string {
	switch {
	case d.Failure != nil:
		return d.Failure.String()
	case d.Left != nil:
		return node.Name() + " leaves"
	}
	return d.Restart
}

// endLost ends the job since it needs a decision. Who is not in the round ends alone.
func (m *stateMachine) endLost(why string) {
	r := m.lostFor(why)
	if _, member := m.conn.past.assignment(m.key); member {
		m.request(reportingLost, r)
		return
	}
	m.finish(&rendezvous.ClosedError{Outcome: r.doc.Outcome})
}

func (m *stateMachine) lostFor(why string) *reportLost {
	reason := "etcd has lost this job, so no round can follow: " + why
	outcome := rendezvous.Outcome{Code: rendezvous.CodeUnformed, Reason: reason}
	return &reportLost{lostDoc{Job: m.conn.job, Outcome: outcome}, m.config.retention()}
}

// A reportLost tells the other members of a round that a job which the store has lost is over. Of several the last one
// counts: all have the same exit code.
type reportLost struct {
	doc       lostDoc
	retention time.Duration
}

func (r *reportLost) do(ctx context.Context, x *executor) error {
	lease, _, err := x.store.Keep(ctx, 0, r.retention)
	if err != nil {
		return err
	}
	return x.when().put(x.keys.lost(), r.doc, lease).try(ctx)
}

func (r *reportLost) done(m *stateMachine, err error) {
	if err != nil {
		m.log(slog.LevelWarn, "the other nodes cannot be told that the job is over", "error", err)
	}
	m.finish(&rendezvous.ClosedError{Outcome: r.doc.Outcome})
}
