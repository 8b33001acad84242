package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// rankInterval is between two looks at who has a rank, if nothing is heard meanwhile.
const rankInterval = time.Second

// enrol lets the store know what self says.
func (b *member) enrol() {
	c, self := b.conn, b.self
	self.Unreached = b.unreached()
	known := b.enrolledLease == c.lease && b.enrolledTry == self.Try && b.sentLeaving == self.Leaving &&
		slices.Equal(b.claimed, self.Unreached)
	ready := self.Try > 0 && c.lease != 0 && c.view.rev > 0 && c.view.state == nil && !c.stale && b.confirming == 0
	if known || b.refused != nil || !ready {
		return
	}
	e := enrolment{
		lease: c.lease, job: c.job, self: self, retention: b.config.retention(),
		mine: configDoc{Host: self.Node.Host, Settings: b.config.settings(), Secret: b.secret},
	}
	if _, member := c.view.assignment(b.key); member {
		e.current = c.view.currentRev
	}
	if b.deserted != "" && b.now.Sub(b.desertedSince) >= b.config.Lease {
		e.over = b.deserted
	}
	b.request(enrolling, &enrolNode{
		enrolment: e, anew: b.enrolledLease != c.lease, known: c.view.config, led: c.view.leader != nil,
		waits: b.takenBy != "", rev: b.nodeRev, deserted: b.deserted != "",
	})
}

// enrolNode lets the store know of the node, as a newcomer under this lease or as it has changed since rev.
type enrolNode struct {
	enrolment
	anew  bool
	known jobConfig // the settings, as far as they are known
	led   bool      // there is a leader, as far as is known
	waits bool      // another node has the rank
	rev   int64

	deserted bool // the job's nodes were not there

	in enrolled
}

func (r *enrolNode) do(ctx context.Context, x *executor) (err error) {
	if !r.anew {
		r.in.rev, err = x.register(ctx, r.lease, r.self, r.known, r.rev)
		return err
	}
	if r.waits {
		waiting, cancel := x.within(ctx, rankInterval)
		x.awaitFreeRank(waiting, r.self.Node.NodeRank)
		cancel()
	}
	if r.deserted && r.over == "" {
		x.pause(ctx, rankInterval/4)
	}
	r.mine.Job = x.newKey()
	r.in, err = x.enrol(ctx, r.enrolment, r.known, r.led)
	if err == nil && r.in.instead != "" {
		_ = x.evict(ctx, r.in.instead) // so that it finds out; otherwise it is in nobody's way
	}
	return err
}

func (r *enrolNode) done(m *stateMachine, err error) {
	b, c, in := &m.member, &m.conn, r.in
	if err != nil {
		m.notEnrolled(err)
		return
	}
	if r.anew && in.config.rev == 0 { // the job has been closed
		c.dirty, c.stale = true, true
		return
	}
	b.deserted = ""
	b.enrolledTry, b.claimed, b.sentLeaving = r.self.Try, r.self.Unreached, r.self.Leaving
	b.enrolledLease, b.nodeRev = r.lease, in.rev
	c.seen = max(c.seen, in.rev)
	if r.anew {
		c.job = in.config.Job
		switch {
		case in.rev <= c.view.rev:
		case r.job != "" && in.config.rev != c.view.config.rev: // the rest of the view is not of this job
			c.dirty = true
		default:
			c.view = c.view.enrolled(in)
		}
	}
	if c.view.leader == nil { // perhaps there is one meanwhile
		c.dirty, m.leader.written = true, true
	}
}

// isUnknown reports whether v, which has just been read, has another state of this node than it has enrolled with, or none.
func (b *member) isUnknown(v *view) bool {
	return b.enrolledLease != 0 && !b.pending[enrolling] && v.rev >= b.nodeRev && v.ownRev != b.nodeRev
}

// enrolAgain is for a store that may know an older state of this node, or none, and may have lost its report.
func (b *member) enrolAgain() {
	b.enrolledLease = 0
	if b.report != nil {
		b.report.recorded = false
	}
}

// notEnrolled refuses a node that differs from the job: at once, or, if it wants the rank of another node, when that one has proved
// to be alive.
func (m *stateMachine) notEnrolled(err error) {
	b := &m.member
	var conflict *rendezvous.MisuseError
	var other *takenError
	var gone *desertedError
	switch {
	case errors.As(err, &gone):
		if b.deserted != gone.job {
			b.deserted, b.desertedSince = gone.job, m.now
			b.show(fmt.Sprintf("the nodes of the last job of this name, of which none is there; begins anew in %v", m.config.Lease))
		}
	case errors.As(err, &conflict):
		b.refuse(conflict)
	case errors.As(err, &other):
		timeout := m.config.failureTimeout()
		if b.takenBy != other.Key {
			b.takenBy, b.takenSince = other.Key, m.now
			b.show(fmt.Sprintf("node rank %d is taken by %s; gives up in %v", other.rank, other.by(), timeout))
		}
		if m.now.Sub(b.takenSince) >= timeout {
			b.refuse(&rendezvous.MisuseError{Err: other})
		}
	case errors.Is(err, errForgotten):
		m.conn.dirty, b.enrolledLease = true, 0
	default:
		m.onFailure(err)
	}
}
