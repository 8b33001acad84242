package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

const (
	leaveTimeout = 30 * time.Second // for telling the rendezvous that this node leaves
	noticeDelay  = time.Second      // after which the log mentions a wait
	stopNotice   = 5 * time.Second  // after which the log mentions that workers have not ended
)

// perform carries out actions. It does not block, except to suspend this process. If one of the actions is finish, it returns
// that.
func (l *loop) perform(todo []action) *finish {
	for _, a := range todo {
		switch a := a.(type) {
		case join:
			l.over, l.reported, l.barrier, l.barrierLasts = nil, nil, nil, nil
			last := past{round: l.round, ran: time.Since(l.started), backoff: l.backoff, failed: l.machine.lastFailure(), reporting: l.reporting}
			l.reporting = nil
			go func() { l.joined <- l.join(last) }()
		case cancelJoin:
			l.cancelJoin()
		case cancelStart:
			l.endStart()
		case diagnose:
			l.diagnose(a.hung)
		case fail:
			l.group.Fail(a.LocalRank, a.Why, time.Now())
		case stop:
			l.interruptGrace()
			l.group.Stop(a.sig)
			l.stopLasts = time.After(stopNotice)
		case revoke:
			l.group.Revoke(a.sig, l.whyOver(), deathsElsewhere(l.round))
		case kill:
			l.group.Kill()
		case forward:
			l.gang.Signal(a.sig)
		case answer:
			l.answer(a)
		case suspend:
			l.suspend()
		case announce:
			l.announce(a)
		case report:
			l.report(a)
		case leave:
			l.leave(a)
		case barrier:
			l.barrierLasts = time.After(noticeDelay)
			l.barrier, l.barrierEnds = time.After(l.ExitBarrier), time.Now().Add(l.ExitBarrier)
		case finish:
			return &a
		case reply:
			a.to.Answer <- Answer{Err: a.err}
		case restart:
			l.restart(a.Command)
		case scale:
			l.scale(a.Command)
		case collect:
			l.collect(a.Command)
		}
	}
	return nil
}

// report reports to the rendezvous, in a separate goroutine. It waits as long as a Join does: until the report arrives, nobody
// can decide what follows.
func (l *loop) report(a report) {
	answer, round, ended := make(chan error, 1), l.round, l.ended
	reporting := make(chan struct{})
	l.reported, l.reporting = answer, reporting
	l.calls.Go(func() {
		ctx, cancel := context.WithTimeout(l.startCtx, l.ReportTimeout)
		defer cancel()
		defer time.AfterFunc(noticeDelay, func() {
			if round.Err() != nil {
				return
			}
			var how []any
			if a.failed != nil { // which nothing may have announced yet, since a summary was to follow
				how = []any{"failed", describe(*a.failed)}
			}
			l.Logger.Warn("waiting: this node has not yet been able to report how its workers ended; gives up in "+l.ReportTimeout.String(), how...)
		}).Stop()
		var failure *rendezvous.Failure
		if a.failed != nil {
			failed := *a.failed
			if failed.Cause != death.Hang {
				failed = reportable(l.Config, round, failed, ended)
			}
			failure = failureOf(l.Config, round, failed)
			failure.Final = failure.Final || asksForNoRestart(*a.failed)
		}
		close(reporting)
		answer <- l.Rendezvous.Report(ctx, round, failure)
	})
}

// leave reports to the rendezvous, in a separate goroutine. If that fails, the other nodes find out by themselves.
func (l *loop) leave(a leave) {
	round := l.round
	l.calls.Go(func() {
		ctx, cancel := context.WithTimeout(l.startCtx, leaveTimeout)
		defer cancel()
		if err := l.Rendezvous.Leave(ctx, round, &InterruptError{Signal: a.sig, By: a.by, Cause: a.cause}); err != nil {
			l.Logger.Debug("the other nodes do not know that this one leaves", "error", err)
		}
	})
}

// announce logs the failure of a worker. Of one that has ended it logs the line that torchrun logs.
func (l *loop) announce(a announce) {
	if a.Cause == death.Hang {
		l.announceHang(a)
		return
	}
	if a.Cause == death.Revoked {
		l.Logger.Error(describe(a.Death) + "; all workers live on, if they take part")
		return
	}
	text := fmt.Sprintf("failed (exitcode: %d) local_rank: %d (pid: %d) of binary: %s", a.ExitCode, a.LocalRank, a.Pid, l.Program)
	switch {
	case a.others > 0 && l.machine.survivors:
		text += "; the others live on, if they take part"
	case a.others > 0:
		text += "; stopping the others"
	}
	l.Logger.Error(text, "rank", a.Rank, "host", l.Node.Host)
}

// interruptGrace returns how long the workers have, with a note about that. If there has been an interrupt, it tells the gang.
func (l *loop) interruptGrace() (grace time.Duration, note string) {
	if l.InterruptGrace == nil || l.machine.interrupt == 0 {
		return l.Spec.Grace, ""
	}
	grace, note = l.InterruptGrace()
	if l.machine.gang {
		l.gang.Interrupted(grace)
	}
	return grace, note
}

// answer says what an interrupt does, and gives the gang, or its start, the time that it has now. A start may last for ever: its guard may
// be suspended.
func (l *loop) answer(a answer) {
	if a.kills {
		l.Logger.Warn(a.text(0, ""))
		return
	}
	grace, note := l.interruptGrace()
	if len(l.starting) > 0 {
		limit := grace
		if l.Spec.Preload != nil { // the imports may last, and no worker has begun
			limit = 0
		}
		l.startEnds = time.After(limit)
	}
	l.Logger.Warn(a.text(grace, note))
}

// text says what an interrupt does, and what the next one will do.
func (a answer) text(grace time.Duration, note string) string {
	name, whom := interrupted{a.sig, a.by}.name(), plural(a.left, "worker", "workers")
	if a.left == 0 {
		whom = "what the workers left behind"
	}
	another := "Another signal"
	if a.early {
		another = "SIGINT"
	}
	switch {
	case a.left < 0 && a.kills:
		return name + ": ending at once"
	case a.left < 0:
		return name + ": ending; no worker runs here. " + another + " ends this at once"
	case a.kills || grace == 0:
		return fmt.Sprintf("%s: killing %s", name, whom)
	default:
		if note != "" {
			note = " (" + note + ")"
		}
		return fmt.Sprintf("%s: stopping %s, and killing what has not ended in %v%s. %s kills at once", name, whom, grace, note, another)
	}
}

// suspend suspends the gang and then this process, and continues them in the reverse order. The time in between does not count. If a
// gang is just being started, that comes first.
func (l *loop) suspend() {
	select {
	case l.starting <- struct{}{}:
		defer func() { <-l.starting }()
	default:
		l.later = append(l.later, suspended{})
		return
	}
	l.pauseProgress(true)
	defer l.pauseProgress(false)
	if l.machine.gang {
		l.gang.Suspend()
	}
	left := time.Until(l.barrierEnds)
	passed := l.Suspend()
	if l.machine.gang {
		l.gang.Resume(passed)
	}
	l.group.Extend(passed)
	if l.barrier != nil {
		l.barrier, l.barrierEnds = time.After(left), time.Now().Add(left)
	}
	if l.Lease > 0 && passed > l.Lease {
		l.Logger.Warn(fmt.Sprintf("continued after %v, which is longer than this node's lease of %v: the other nodes may have gone on without it",
			passed.Round(time.Millisecond), l.Lease))
		return
	}
	l.Logger.Debug("continued", "after", passed)
}
