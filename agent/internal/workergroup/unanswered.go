package workergroup

import (
	"fmt"
	"slices"
	"time"
)

// awakeTolerance is how late a deadline may be noticed. If it takes longer, this process was stopped, and perhaps the
// worker with it. It is also how much longer a worker gets when its deadline has passed: both may have been stopped
// until a moment ago.
const awakeTolerance = time.Second

// exitDelay is how long a worker may live after its connection has ended, and its connection after it has ended. If a
// worker ends in that time, its exit says why its connection has ended.
const exitDelay = time.Second

// unanswered are the rounds that were sent to a worker and that it has not answered. It has no clock: its methods are
// told the time.
type unanswered struct {
	pending []pending
	overdue bool      // the deadline of the first of pending has been moved, because it had passed
	cut     time.Time // when its connection ended; zero: it has not, or check has dealt with that
}

// A pending is a round that a worker has to answer. Each has a deadline of its own: if another round comes before the
// answer, the deadline of the first one stays.
type pending struct {
	round    int
	deadline time.Time
}

// sent records that a round was sent: the worker has to answer it within the timeout.
func (u *unanswered) sent(round int, now time.Time, timeout time.Duration) {
	u.pending = append(u.pending, pending{round, now.Add(timeout)})
}

// entered records an answer. It counts for all rounds before, too. It reports whether there was such a round.
func (u *unanswered) entered(round int) bool {
	i := slices.IndexFunc(u.pending, func(p pending) bool { return p.round == round })
	if i < 0 {
		return false
	}
	u.pending, u.overdue = u.pending[i+1:], false
	return true
}

// entering is the last round that was sent, if it has not been answered; otherwise 0.
func (u *unanswered) entering() int {
	if len(u.pending) == 0 {
		return 0
	}
	return u.pending[len(u.pending)-1].round
}

// extend moves all deadlines by the time for which the job was suspended.
func (u *unanswered) extend(passed time.Duration) {
	for i := range u.pending {
		u.pending[i].deadline = u.pending[i].deadline.Add(passed)
	}
	if !u.cut.IsZero() {
		u.cut = u.cut.Add(passed)
	}
}

// deadline is when check may find something; zero: there is no such time.
func (u *unanswered) deadline() (at time.Time) {
	if len(u.pending) == 0 {
		return time.Time{}
	}
	if at = u.pending[0].deadline; !u.cut.IsZero() && u.cut.Add(exitDelay).Before(at) {
		return u.cut.Add(exitDelay)
	}
	return at
}

// check returns why the worker has to be killed: it has not entered a round in time, or cannot do so any more. Empty:
// it need not be.
func (u *unanswered) check(now time.Time, connected bool, timeout time.Duration) (fault string) {
	if len(u.pending) == 0 {
		return ""
	}
	if !u.cut.IsZero() && !now.Before(u.cut.Add(exitDelay)) {
		if u.cut = (time.Time{}); !connected {
			return fmt.Sprintf("disconnected from its agent, and has not entered round %d", u.entering())
		}
	}
	first := &u.pending[0]
	switch late := now.Sub(first.deadline); {
	case late < 0:
	case late > awakeTolerance:
		first.deadline, u.overdue = now.Add(timeout), false
	case !u.overdue:
		first.deadline, u.overdue = now.Add(awakeTolerance), true
	default:
		return fmt.Sprintf("did not enter round %d within %v", first.round, timeout)
	}
	return ""
}
