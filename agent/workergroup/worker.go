package workergroup

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/rounds"
)

// A worker is one process from its start to its end. Its group's mutex guards what changes.
type worker struct {
	group  *Group
	local  int
	host   string // of this node, as people call it
	gang   WorkerGang
	socket *socket
	gone   chan struct{} // closed when nothing is left of it

	started  chan struct{} // closed when pid is known, or it has not started
	pid      int
	rank     int          // in the last round that was sent to it
	exit     *death.Death // nil: it has not ended
	survives bool         // it may outlive the round, which Revoke has ended
	stopped  bool         // by Stop or Revoke
	failed   bool         // it is being killed for a fault, or because it hangs
	fault    string       // what it did wrong on its socket; empty: nothing
	livedOn  int          // the first round that was sent to it after the one in which it was started; 0: there was none
	revoked  *death.Death // its failure, if it has revoked the last round that was sent to it; nil: it has not
	unanswered
}

// follow follows the worker to its end.
func (w *worker) follow() {
	for x := range w.gang.Exits() {
		if !x.Failed() { // what it has sent says whether it was still needed
			w.socket.drain()
		}
		w.group.exited(w, x)
	}
	w.group.left(w)
}

// isGone reports whether nothing is left of it.
func (w *worker) isGone() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// isSurvivor reports whether it has survived its round, and still can enter another.
func (w *worker) isSurvivor() bool {
	w.group.mu.Lock()
	defer w.group.mu.Unlock()
	return w.survives && w.canSurvive()
}

// canSurvive reports whether it takes part, and may do so after its round.
func (w *worker) canSurvive() bool {
	return !w.isEnding() && w.socket.isConnected()
}

// isEnding reports whether it has ended, or will soon.
func (w *worker) isEnding() bool { return w.exit != nil || w.stopped || w.failed }

func (w *worker) stop(sig syscall.Signal) {
	if !w.stopped {
		w.stopped = true
		w.gang.Stop(sig)
	}
}

// enter sends it a round, which it has to enter in time.
func (w *worker) enter(r rounds.Round) {
	w.survives, w.revoked, w.livedOn = false, nil, cmp.Or(w.livedOn, r.Round)
	w.sent(r.Round, time.Now(), w.group.Timeout)
	w.socket.send(r)
	w.failIfEndedEarly()
	if !w.socket.isConnected() {
		w.cut = time.Now()
	}
	w.group.schedule()
}

// failIfEndedEarly makes it a failure if it has ended with exit code 0 and has not entered the round that it has to enter. The others wait
// for it there.
func (w *worker) failIfEndedEarly() {
	if x := w.exit; x != nil && w.entering() > 0 && !x.Failed() && !x.Stopped {
		x.ExitCode, x.Cause = 1, death.Fault
		x.Why = fmt.Sprintf("ended with exit code 0 before it had entered round %d", w.entering())
	}
}

// receive handles a message from it.
func (w *worker) receive(m rounds.Message) {
	w.group.mu.Lock()
	defer w.group.mu.Unlock()
	if m.Revoke != "" {
		w.revokes(m)
	} else {
		w.enters(m.Round)
	}
}

// enters handles its answer to a round. The round may be over by now: the worker may not have known that when it answered.
func (w *worker) enters(round int) {
	switch {
	case w.entered(round):
		w.group.schedule()
	case w.entering() > 0:
		w.fail("enters round %d, and is in round %d", round, w.entering())
	default:
		w.fail("enters round %d, and has nothing to enter: it is in round %d", round, w.group.round)
	}
}

// revokes handles its message that ends a round for all. Only the first one in a round counts, and none if that round is over. If it misses
// workers that can be killed for that, they are killed instead, and their end is the end of the round.
func (w *worker) revokes(m rounds.Message) {
	switch {
	case m.Round > w.group.round:
		w.fail("revokes round %d, and is in round %d", m.Round, w.group.round)
	case m.Round == w.group.round && w.revoked == nil && w.exit == nil && !w.killMissing(m.Missing):
		revoked := w.death(1, death.Revoked, m.Revoke)
		w.revoked = &revoked
		w.group.deliverRevocation(w)
	}
}

// death says how it has failed, though it has not ended.
func (w *worker) death(exitCode int, cause death.Cause, why string) death.Death {
	return death.Death{
		Rank: w.rank, LocalRank: w.local, Host: w.host, Pid: w.pid, ExitCode: exitCode, At: time.Now(), Cause: cause, Why: why,
	}
}

// killMissing kills those workers of this node that w misses and that have not entered the round. It reports whether there are any. It kills
// none if w has not entered the round either. It also kills none that was to enter a round before w was started: w is new then, and may not
// have what that worker has in memory.
func (w *worker) killMissing(ranks []int) (found bool) {
	if w.entering() != 0 {
		return false
	}
	for _, o := range w.group.workers {
		if o == nil || o.exit != nil || o.entering() == 0 || !slices.Contains(ranks, o.rank) || !w.isOlderThan(o.pending[0].round) {
			continue
		}
		o.fail("has not entered round %d, and rank %d has given it up", w.group.round, w.rank)
		found = found || o.failed
	}
	return found
}

// isOlderThan reports whether it was started in a round before that one.
func (w *worker) isOlderThan(round int) bool { return w.livedOn > 0 && w.livedOn <= round }

// disconnected is called when its connection has ended. Perhaps the worker has ended, too: then its exit follows.
func (w *worker) disconnected() {
	w.group.mu.Lock()
	defer w.group.mu.Unlock()
	w.cut = time.Now()
	w.group.schedule()
}

// warn logs something about the worker.
func (w *worker) warn(what string) {
	w.group.mu.Lock()
	rank := w.rank
	w.group.mu.Unlock()
	w.group.Warn(fmt.Sprintf("rank %d (local rank %d): %s", rank, w.local, what))
}

// fail kills it for a fault. Its exit follows.
func (w *worker) fail(format string, args ...any) {
	if !w.isEnding() {
		w.failed, w.fault = true, fmt.Sprintf(format, args...)
		w.group.Warn(fmt.Sprintf("rank %d (local rank %d) is killed: it %s", w.rank, w.local, w.fault))
		w.gang.Kill()
	}
}
