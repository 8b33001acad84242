package workergroup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
)

// A worker is one process from its start to its end.
type worker struct {
	group *Group
	local int
	host  string // of this node, as people call it
	pid   int
	runs  bool // it is not being started any more

	socket  *socket
	conn    *connection     // nil: it is not connected
	reading bool            // more may come from its last connection
	current env.Round       // that it is in, or has to enter
	over    *env.Round      // the last document about the end of current; nil: current goes on
	refused map[string]bool // reasons for which connections were refused, and that have been logged

	rank     int          // in the last round that was sent to it
	left     *death.Death // it has ended, and perhaps not all has been read that it has sent before
	leftAt   time.Time
	exit     *death.Death // nil: it has not ended, as far as the agent knows
	ended    bool         // all its processes have
	gone     bool         // its exit is known, and nothing is left of it
	survives bool         // it may outlive the round, which Revoke has ended
	stopped  bool         // by Stop or Revoke
	failed   bool         // it is being killed for a fault, or because it hangs
	fault    string       // what it did wrong on its socket; empty: nothing
	livedOn  int          // the first round that was sent to it after the one in which it was started; 0: there was none
	revoked  *death.Death // its failure, if it has revoked the last round that was sent to it; nil: it has not
	unanswered
}

// canSurvive reports whether it takes part, and may do so after its round.
func (w *worker) canSurvive() bool { return !w.isEnding() && w.conn != nil }

// isEnding reports whether it has ended, or will soon.
func (w *worker) isEnding() bool { return w.left != nil || w.stopped || w.failed }

// enter sends it a round, which it has to enter in time.
func (w *worker) enter(r env.Round, now time.Time) {
	w.survives, w.revoked, w.livedOn = false, nil, cmp.Or(w.livedOn, r.Round)
	w.sent(r.Round, now, w.group.Timeout)
	w.send(r)
}

// send sends it a document, if it is connected, or keeps it until it is. A worker that does not read what it is sent
// no longer takes part.
func (w *worker) send(r env.Round) {
	if r.Over {
		w.over = &r
	} else {
		r = w.withSocket(r)
		w.current, w.over = r, nil
	}
	if w.conn != nil && !w.conn.send(r) {
		w.disconnect()
		w.warn("takes part no more, since it does not read what it is told")
	}
}

// withSocket returns r with the path of its socket among its variables.
func (w *worker) withSocket(r env.Round) env.Round {
	r.Env = maps.Clone(r.Env)
	r.Env[socketVariable] = w.socket.path
	return r
}

// exited records its exit when everything has been read that it has sent. That it has ended with exit code 0 is a
// failure if it has not entered the round that it has to enter: the others wait for it there.
func (w *worker) exited() {
	g, x := w.group, *w.left
	x.Rank = w.rank
	x.Stopped = x.Stopped && !w.failed
	switch {
	case x.Failed() && w.fault != "":
		x.Cause, x.Why = death.Fault, w.fault
	case w.entering() > 0 && !x.Failed() && !x.Stopped:
		x.ExitCode, x.Cause = 1, death.Fault
		x.Why = fmt.Sprintf("ended with exit code 0 before it had entered round %d", w.entering())
	}
	w.exit = &x
	if slices.Contains(g.workers, w) {
		g.events = append(g.events, Event{Exit: &x})
	}
	if x.Failed() && !x.Stopped && !g.stopping && slices.Contains(g.newest(), w) { // or another is being started in its place
		g.notifyOver("", x)
	}
	w.finish()
}

// finish closes its socket when its exit is known, and nothing is left of it.
func (w *worker) finish() {
	if w.exit == nil || !w.ended || w.gone {
		return
	}
	w.gone = true
	w.disconnect()
	w.socket.close()
	w.group.checkEnd()
}

// deadline is when check has to be called; zero: there is no such time.
func (w *worker) deadline() time.Time {
	switch {
	case w.left != nil && w.exit == nil:
		return w.leftAt.Add(exitDelay)
	case w.isEnding():
		return time.Time{}
	}
	return w.unanswered.deadline()
}

func (w *worker) check(now time.Time) {
	switch {
	case w.left != nil && w.exit == nil:
		if !now.Before(w.leftAt.Add(exitDelay)) { // a process that it has started may still be connected
			w.exited()
		}
	case w.isEnding():
	default:
		if fault := w.unanswered.check(now, w.conn != nil, w.group.Timeout); fault != "" {
			w.fail("%s", fault)
		}
	}
}

// receive handles a document from it.
func (w *worker) receive(m env.Message, now time.Time) {
	switch {
	case m.Revoke != "":
		w.revokes(m, now)
	case w.entered(m.Round): // the round may be over by now: it may not have known that when it answered
	case w.entering() > 0:
		w.fail("enters round %d, and is in round %d", m.Round, w.entering())
	default:
		w.fail("enters round %d, and has nothing to enter: it is in round %d", m.Round, w.group.round)
	}
}

// revokes handles its message that ends a round for all. Only the first one in a round counts, and none if that round is over. If it misses
// workers that can be killed for that, they are killed instead, and their end is the end of the round.
func (w *worker) revokes(m env.Message, now time.Time) {
	switch {
	case m.Round > w.group.round:
		w.fail("revokes round %d, and is in round %d", m.Round, w.group.round)
	case m.Round == w.group.round && w.revoked == nil && w.exit == nil && !w.killMissing(m.Missing):
		revoked := w.death(now, 1, death.Revoked, m.Revoke)
		w.revoked = &revoked
		if w.group.next == nil { // or Entered passes it on
			w.group.events = append(w.group.events, Event{Revocation: &revoked})
		}
	}
}

// death says how it has failed, though it has not ended.
func (w *worker) death(at time.Time, exitCode int, cause death.Cause, why string) death.Death {
	return death.Death{
		Rank: w.rank, LocalRank: w.local, Host: w.host, Pid: w.pid, ExitCode: exitCode, At: at, Cause: cause, Why: why,
	}
}

// killMissing kills those workers of this node that w misses and that have not entered the round. It reports whether there are any. It kills
// none if w has not entered the round either. It also kills none that was to enter a round before w was started: w is new then, and may not
// have what that worker has in memory.
func (w *worker) killMissing(ranks []int) (found bool) {
	if w.entering() != 0 {
		return false
	}
	for _, o := range w.group.newest() {
		if o.exit != nil || o.entering() == 0 || !slices.Contains(ranks, o.rank) || !w.isOlderThan(o.pending[0].round) {
			continue
		}
		o.fail("has not entered round %d, and rank %d has given it up", w.group.round, w.rank)
		found = found || o.failed
	}
	return found
}

// isOlderThan reports whether it was started in a round before that one.
func (w *worker) isOlderThan(round int) bool { return w.livedOn > 0 && w.livedOn <= round }

// warn logs something about the worker.
func (w *worker) warn(what string) {
	w.group.Warn(fmt.Sprintf("rank %d (local rank %d): %s", w.rank, w.local, what))
}

// fail kills it for a fault. Its exit follows.
func (w *worker) fail(format string, args ...any) {
	if !w.isEnding() {
		w.failed, w.fault = true, fmt.Sprintf(format, args...)
		w.group.Warn(fmt.Sprintf("rank %d (local rank %d) is killed: it %s", w.rank, w.local, w.fault))
		if w.runs { // or Entered does so
			w.group.gang.Kill(w.local)
		}
	}
}
