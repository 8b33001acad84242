package agent

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// happen changes the world by e, lets the machine answer, and holds it to the invariants.
func (w *world) happen(e event) {
	wasFinished := w.finished
	running := w.gangLives && w.reason == ""
	switch e := e.(type) {
	case started:
		w.joinPending, w.gangLives, w.entered, w.joinErr = false, true, true, nil
		refusal := slices.IndexFunc(w.exits, asksForNoRestart)
		last := w.exits
		w.reason, w.stops, w.kills, w.revokes, w.revoked, w.exits, w.told = "", 0, 0, 0, false, nil, nil
		w.over, w.reports, w.answered, w.unheard = nil, nil, false, false
		w.hung, w.revoker, w.diagnosing, w.fails = -1, -1, false, 0
		switch {
		case w.interrupts > 0:
			w.reason = "interrupt"
		case refusal >= 0: // too late to be cancelled
			w.reason, w.exits = "failure", last[refusal:refusal+1]
		}
		w.alive = []int{0, 1, 2}
	case startFailed:
		w.joinPending, w.joinErr = false, e.err
	case workerExited:
		w.alive = slices.DeleteFunc(w.alive, func(rank int) bool { return rank == e.Rank })
		x := e.Death
		if x.Rank == w.hung {
			if x.Cause, x.Stopped = death.Hang, false; !x.Failed() {
				x.ExitCode = -int(syscall.SIGKILL)
			}
		}
		if x.Rank == w.revoker {
			if x.Stopped || !x.Failed() {
				x.ExitCode = 1
			}
			x.Cause, x.Stopped = death.Revoked, false
		}
		w.exits = append(w.exits, x)
		if running && e.Failed() {
			w.reason = "failure"
		}
	case hung:
		if running {
			w.reason, w.hung, w.diagnosing = "failure", e.Rank, true
		}
	case revocation:
		if running {
			w.reason, w.revoker = "failure", e.Rank
		}
	case diagnosed:
		w.diagnosing = false
	case gangGone:
		w.gangLives = false
	case revoked:
		w.revoked = true
	case roundOver:
		w.over, w.barrier = e.err, false
		if running {
			w.reason, w.diagnosing = "round", isHang(e.err)
		}
	case reported:
		w.answered, w.unheard = true, e.err != nil
	case barrierOver:
		w.barrier, w.unheard = false, true
	case interrupted:
		w.interrupt(1, running)
	case timedOut:
		w.interrupt(1-min(w.interrupts, 1), running)
	case commanded:
		switch e.Kind {
		case CommandStop, CommandDrain:
			w.interrupt(1-min(w.interrupts, 1), running)
		case CommandKill:
			w.interrupt(2-min(w.interrupts, 2), running)
		case CommandRestart, CommandScale, CommandStacks:
		}
	}
	actions := w.m.Step(e)
	w.history = append(w.history, fmt.Sprintf("%T%v -> %s, %s", e, e, w.m.state, show(actions)))
	if _, asks := e.(commanded); asks {
		_, collects := actions[0].(collect)
		_, restarts := actions[0].(restart)
		_, scales := actions[0].(scale)
		answer, answers := actions[0].(reply)
		w.check(12, answers || scales && !wasFinished || collects && w.gangLives || restarts && running, "a command has no answer")
		w.check(12, !wasFinished || answers && answer.err != nil, "a command is carried out after the end")
		actions = actions[1:]
	}
	w.check(7, !wasFinished || len(actions) == 0, "something is asked for after the end")
	w.obey(actions)
	if w.gangLives {
		w.check(3, (w.reason == "failure") == (len(w.reports) == 1), "a failure is not reported at once, or something else is")
		w.check(5, (w.reason == "" || w.diagnosing) == (w.stops+w.kills+w.revokes == 0), "stopped without a reason, or not in spite of one")
		w.check(11, (w.hung >= 0 && !w.diagnosing) == (w.fails == 1), "who hangs is killed before it is known what all do, or is not killed")
		w.check(6, w.interrupts < 2 || w.kills == 1, "the second interrupt does not kill")
		w.check(10, w.reason != "failure" || w.diagnosing || len(w.alive) == 0 || len(w.told) == 1, "a failure is kept to itself")
	} else {
		waits := w.entered && w.over == nil && len(w.reports) == 1 && !w.unheard && w.interrupts == 0
		w.check(6, !w.joinPending || w.interrupts < 2 || w.cancels == 1, "the second interrupt does not end a start")
		w.check(7, w.joinPending || w.finished || waits || w.diagnosing, "nothing is left, and nothing follows")
		w.check(7, !w.joinPending || !w.finished, "finished, and something follows")
	}
}

// interrupt counts n interrupts.
func (w *world) interrupt(n int, running bool) {
	if n > 0 {
		w.diagnosing = false
		w.interrupts += n
		if running {
			w.reason = "interrupt"
		}
	}
}

// obey does to the world what the machine asks for.
func (w *world) obey(actions []action) {
	for _, a := range actions {
		switch a := a.(type) {
		case join:
			w.check(1, !w.joinPending && (!w.gangLives || w.revokes == 1 && w.stops == 0 && w.areGone()), "two gangs")
			w.check(2, w.interrupts == 0, "started after an interrupt")
			w.check(3, !w.entered || errors.Is(w.over, rendezvous.ErrNewRound), "started again before the round is over, or after the job")
			w.check(4, !w.refused(), "started again after NoRestart")
			w.check(10, w.reason != "failure" || len(w.told) == 1, "a failure that leads to a restart is kept to itself")
			w.joinPending, w.entered, w.barrier = true, false, false
		case cancelJoin:
			w.check(2, w.joinPending && (w.interrupts > 0 || w.refused()), "cancels no join, or for no reason")
		case cancelStart:
			w.cancels++
			w.check(6, w.joinPending && w.interrupts >= 2 && w.cancels == 1, "cancels no start, too early, or twice")
		case diagnose:
			w.check(11, w.diagnosing && (a.hung == nil) == (w.hung < 0), "nobody hangs")
		case fail:
			w.fails++
			w.check(11, a.Rank == w.hung && w.fails == 1 && w.stops+w.revokes+w.kills == 0, "the wrong worker is killed, twice, or too late")
		case stop:
			w.stops++
			w.check(5, w.gangLives && w.stops == 1, "stops nobody, or twice")
			if w.revokes > 0 {
				closed := errors.Is(w.over, rendezvous.ErrClosed)
				w.check(5, w.interrupts > 0 || closed || w.unheard || w.joinErr != nil || w.refused(), "survivors are stopped for no reason")
			}
		case revoke:
			w.revokes++
			w.check(5, w.m.replace && w.gangLives && w.stops == 0 && w.revokes == 1 && w.reason != "interrupt", "revokes nobody, twice, or for an interrupt")
		case kill:
			w.kills++
			w.check(6, w.gangLives && w.interrupts >= 2 && w.kills == 1, "kills nobody, too early, or twice")
		case forward:
			w.check(5, w.gangLives && w.reason == "", "a signal for nobody")
		case announce:
			w.told = append(w.told, a.Rank)
			first, others := max(w.hung, w.revoker), len(w.alive)
			if first < 0 {
				first = w.exits[w.firstFailure()].Rank
			} else if slices.Contains(w.alive, first) {
				others--
			}
			w.check(10, len(w.told) == 1 && w.reason == "failure" && (w.stops+w.revokes == 1 || !w.gangLives), "announced twice, or what did not stop the gang")
			w.check(10, first == a.Rank && a.others == others, "the wrong worker is announced")
		case report:
			w.reports = append(w.reports, a)
			w.checkReport(a.failed)
		case barrier:
			w.check(3, len(w.reports) == 1 && w.reports[0].failed == nil && w.answered && w.over == nil && !w.barrier, "waits for nobody, or twice")
			w.barrier = true
		case finish:
			w.check(7, !w.joinPending && !w.gangLives && !w.finished, "finished too early, or twice")
			w.finished, w.barrier = true, false
			w.checkEnd(a.err)
			w.check(11, w.hung < 0 || len(w.told) == 1, "nobody learns what the workers were doing")
			w.check(8, errors.Is(a.why, a.err) || a.err == nil && w.interrupts > 0 && w.reason != "", "the rendezvous is told something else")
		}
	}
}

func (w *world) checkReport(failed *death.Death) {
	w.check(3, len(w.reports) == 1 && w.over == nil, "reported twice, or after the round")
	if failed == nil {
		w.check(3, !w.gangLives && w.firstFailure() < 0 && w.reason == "", "the success of a gang that lives, or of another")
		return
	}
	first := max(w.hung, w.revoker)
	if first < 0 {
		first = w.exits[w.firstFailure()].Rank
	}
	w.check(3, w.reason == "failure" && failed.Rank == first, "the wrong failure is reported")
}

// areGone reports whether nobody is left that a revoke has ended.
func (w *world) areGone() bool {
	return !slices.ContainsFunc(w.alive, func(rank int) bool { return rank == w.hung || !slices.Contains(w.outlives, rank) })
}

func (w *world) firstFailure() int { return slices.IndexFunc(w.exits, death.Death.Failed) }

func (w *world) refused() bool {
	return slices.ContainsFunc(w.exits, func(x death.Death) bool { return x.Code() == NoRestart })
}

func (w *world) checkEnd(err error) {
	over := w.joinErr
	if w.entered {
		over = w.over
	}
	var closed *rendezvous.ClosedError
	decided := errors.As(over, &closed) && (w.entered && w.reason != "interrupt" || w.interrupts == 0)
	success := w.entered && w.firstFailure() < 0
	if decided {
		success = closed.Outcome.Success()
	}
	w.check(7, !w.entered || over != nil || w.unheard || w.interrupts > 0, "does not wait for what the rendezvous decides")
	w.check(8, (err == nil) == success, fmt.Sprintf("wrong end: %v", err))
	var worker *WorkerError
	if !errors.As(err, &worker) {
		w.check(9, !decided || success || closed.Outcome.Failure == nil, "nobody is named for a failure")
		return
	}
	w.check(9, w.reason != "interrupt", "a worker is named for an interrupt")
	if decided && (w.reason != "failure" || closed.Outcome.Failure == far || closed.Outcome.Failure == hangsFar) {
		w.check(9, worker.Elsewhere == closed.Outcome.Failure && worker.Root.Rank == far.Rank, "the failure of another node is not named")
		return
	}
	w.check(9, worker.Elsewhere == nil, "another node is named")
	root := w.firstFailure()
	if i := slices.IndexFunc(w.exits, func(x death.Death) bool { return x.Rank == w.hung || x.Rank == w.revoker }); i >= 0 {
		root = i
	}
	if w.reason != "failure" {
		root = slices.IndexFunc(w.exits, func(x death.Death) bool { return x.Code() == NoRestart })
	}
	w.check(9, root >= 0 && worker.Root.Rank == w.exits[root].Rank, "wrong root cause")
	w.check(9, w.reason != "failure" || !worker.Root.Stopped, "a stopped worker is named")
}
