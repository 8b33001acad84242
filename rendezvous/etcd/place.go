package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// taken is what a node knows whose rank another one has. That one may be dead and look alive, as one does that this node comes
// instead of.
type taken struct {
	by    string    // its key; empty: nobody is known to have it
	since time.Time // when this node found out
}

// enrol lets etcd know what self says.
func (l *loop) enrol() {
	lease, self, config := l.lease.id, l.self, l.config
	self.Unreached, self.Probed = l.unreached(), l.probeAnswer()
	told := l.under == lease && l.registered == self.Try && l.toldProbed == self.Probed && slices.Equal(l.claimed, self.Unreached)
	if told || l.refused || l.forgotten || self.Try == 0 || lease == 0 || l.view.rev == 0 || l.view.state != nil || l.confirming > 0 || l.probeDue() > 0 {
		return
	}
	anew, known, led, waits, rev := l.under != lease, l.view.config, l.view.leader != nil, l.taken.by != "", l.nodeRev
	e := enrolment{
		lease: lease, job: l.job, self: self, keep: config.keep(),
		mine: configDoc{Job: newKey(), Host: self.Node.Host, Settings: config.settings(), Secret: l.secret},
	}
	if _, has := l.view.seat(l.etcd.key); has {
		e.seat = l.view.currentRev
	}
	var in enrolled
	l.start(registering, func(ctx context.Context) (err error) {
		if !anew {
			rev, err = l.etcd.register(ctx, lease, self, known, rev)
			return err
		}
		if waits {
			waiting, cancel := context.WithTimeout(ctx, rankPause)
			l.etcd.awaitRank(waiting, self.Node.NodeRank)
			cancel()
		}
		in, err = l.etcd.enrol(ctx, e, known, led)
		rev = in.rev
		if err == nil && in.instead != "" {
			_ = l.etcd.evict(ctx, in.instead) // so that it finds out; otherwise it is in nobody's way
		}
		return err
	}, func(err error) {
		if err != nil {
			l.notEnrolled(err)
			return
		}
		if anew && in.config.rev == 0 { // the job has been closed
			l.dirty = true
			return
		}
		l.registered, l.claimed, l.toldProbed, l.under, l.nodeRev = self.Try, self.Unreached, self.Probed, lease, rev
		if anew {
			l.job = in.config.Job
		}
		switch {
		case in.rev <= l.view.rev:
		case e.job != "" && in.config.rev != l.view.config.rev: // the rest of the view is not of this job
			l.dirty = true
		default:
			l.view = l.view.enrolled(in)
		}
		if l.view.leader == nil { // perhaps there is one meanwhile
			l.dirty, l.written = true, true
		}
	})
}

// rankPause is between two looks at who has a rank, if nothing is heard meanwhile.
const rankPause = time.Second

// notEnrolled refuses a node that differs from the job: at once, or, if it wants the rank of another node, when that one has proved
// to be alive.
func (l *loop) notEnrolled(err error) {
	var conflict *conflictError
	var other *takenError
	switch {
	case errors.As(err, &conflict):
		l.refuse(conflict)
	case errors.As(err, &other):
		patience := l.config.patience()
		if l.taken.by != other.Key {
			l.taken = taken{other.Key, time.Now()}
			l.say(fmt.Sprintf("node rank %d is taken by %s; gives up in %v", other.rank, other.by(), patience))
		}
		if time.Since(l.taken.since) >= patience {
			l.refuse(other)
		}
	case errors.Is(err, errForgotten):
		l.dirty, l.under = true, 0
	default:
		l.onFailure(err)
	}
}

// refuse fails the Join, and keeps the node out of etcd until the next one.
func (l *loop) refuse(err error) {
	l.refused = true
	l.fail(&rendezvous.MisuseError{Err: err})
}
