package agent

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// joined is the outcome of a join.
type joined struct {
	round   *rendezvous.Round
	gang    Gang
	stamps  []time.Time // of the progress files, before the gang was started
	backoff backoff
	err     error
}

// past is what a join needs to know about the previous workers.
type past struct {
	round   *rendezvous.Round // nil: there were none
	gang    Gang
	ran     time.Duration
	backoff backoff
	failed  *gangFailure // nil: none of them failed

	reports <-chan struct{} // closed when the report of that is on its way; nil: there is none
}

const (
	leaveTimeout = 30 * time.Second // for telling the rendezvous that this node leaves
	noticeDelay  = time.Second      // after which the log mentions a wait
)

// perform carries out actions. It does not block, except to suspend this process. If one of the actions is finish, it returns
// that.
func (l *loop) perform(todo []action) *finish {
	for _, a := range todo {
		switch a := a.(type) {
		case join:
			l.over, l.reported, l.barrier, l.barrierLasts = nil, nil, nil, nil
			last := past{round: l.round, gang: l.gang, ran: time.Since(l.started), backoff: l.backoff, failed: l.machine.lastFailure(), reports: l.reporting}
			l.reporting = nil
			go func() { l.joined <- l.join(last) }()
		case cancelJoin:
			l.cancelJoin()
		case cancelStart:
			l.cancelStart()
			l.abandon = time.After(abandonTimeout)
		case diagnose:
			l.diagnose(a.hung)
		case fail:
			l.gang.Fail(a.LocalRank, a.Hung, false)
		case stop:
			l.gang.Stop(a.sig)
		case revoke:
			gang := l.gang.(RevocableGang)
			gang.Revoke(a.sig, deathsElsewhere(l.round))
			l.revoked = gang.Revoked()
		case kill:
			l.gang.Kill()
		case forward:
			l.gang.Signal(a.sig)
		case answer:
			l.Logger.Warn(a.text(l.Spec.Grace))
		case suspend:
			l.suspend()
		case announce:
			l.announce(a)
		case report:
			l.report(a)
		case leave:
			l.leave(a.sig)
		case barrier:
			l.barrierLasts = time.After(noticeDelay)
			l.barrier, l.barrierEnds = time.After(l.ExitBarrier), time.Now().Add(l.ExitBarrier)
		case finish:
			l.complete(a.err)
			return &a
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
	l.reports.Go(func() {
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
			if failed.Hung == "" {
				failed = reportable(l.Config, round, failed, ended)
			}
			failure = failureOf(l.Config, round, failed)
			failure.Final = failure.Final || a.failed.Code == NoRestart
		}
		close(reporting)
		answer <- l.Rendezvous.Report(ctx, round, failure)
	})
}

// leave reports to the rendezvous, in a separate goroutine. If that fails, the other nodes find out by themselves.
func (l *loop) leave(sig syscall.Signal) {
	round := l.round
	l.reports.Go(func() {
		ctx, cancel := context.WithTimeout(l.startCtx, leaveTimeout)
		defer cancel()
		if err := l.Rendezvous.Leave(ctx, round, &InterruptError{Signal: sig}); err != nil {
			l.Logger.Debug("the other nodes do not know that this one leaves", "error", err)
		}
	})
}

// logRestart and announce log what torchrun logs at these times, in its words. last.round is nil if these workers are the
// first on this node.
func (l *loop) logRestart(round *rendezvous.Round, last past, delay time.Duration) {
	if last.round == nil {
		return
	}
	why := Printable(last.failed.explain(round.Why, l.Config, last.round))
	level, text := slog.LevelInfo, "starting the workers again: "+why
	if l.Replace {
		text = "going on in another round: " + why
	}
	if isRestart(round, last.round) {
		what := "restart worker group"
		if l.Replace {
			what = "replace those that have ended"
		}
		level, text = slog.LevelWarn, fmt.Sprintf("[%s] Worker group FAILED. %d/%d attempts left; will %s: %s",
			l.Node.Role, l.MaxRestarts-round.Restarts+1, l.MaxRestarts, what, why)
	}
	if delay > 0 {
		text += fmt.Sprintf("; waiting %v first, since they keep failing", delay)
	}
	l.Logger.Log(context.Background(), level, text)
}

func isRestart(round, last *rendezvous.Round) bool {
	return last != nil && round.Restarts > last.Restarts
}

func (l *loop) announce(a announce) {
	if a.Hung != "" {
		l.announceHang(a)
		return
	}
	text := fmt.Sprintf("failed (exitcode: %d) local_rank: %d (pid: %d) of binary: %s", exitCode(a.Exit), a.LocalRank, a.Pid, l.Program)
	switch {
	case a.others > 0 && l.machine.survivors:
		text += "; the others live on, if they take part"
	case a.others > 0:
		text += "; stopping the others"
	}
	l.Logger.Error(text, "rank", a.Rank, "host", l.Node.Host)
}

// join joins a round and starts this node's workers in it. It runs in its own goroutine, and uses only fields
// of the loop that never change.
func (l *loop) join(last past) joined {
	if last.reports != nil { // whom workers could not reach matters to the next round
		select {
		case <-last.reports:
		case <-l.joinCtx.Done():
		}
	}
	round, err := l.Rendezvous.Join(l.joinCtx, l.Node)
	if err != nil {
		return joined{err: err}
	}
	l.Logger.Debug("joined", "round", round.ID, "nodes", round.Size, "node", round.Self,
		"master_addr", round.Master.Addr, "master_port", round.Master.Port)
	now := last.backoff.after(last.ran, isRestart(round, last.round))
	delay := now.delay(l.MaxBackoff)
	l.logRestart(round, last, delay)
	spec := Plan(l.Config, round)
	if err := prepareErrorFiles(l.Config, round.Restarts, len(spec.Workers)); err != nil {
		l.Logger.Warn("cannot prepare the error files of the workers", "error", err)
	}
	if err := l.wait(delay, round.Done()); err != nil {
		return joined{err: err}
	}
	if gang, ok := last.gang.(RevocableGang); ok && round.ID == last.round.ID+1 {
		gang.Report(deathsOf(round.Gone, l.Node.ID)) // some may have been lost since that round was over
	}
	stamps := l.prepareProgress(len(spec.Workers))
	gang, err := l.Start(l.startCtx, spec) // from here on workers may run, whom an interrupt lets stop by themselves
	round.Started()
	return joined{round: round, gang: gang, stamps: stamps, backoff: now, err: err}
}

// wait waits for d, or the end of the round. It fails if the join is cancelled.
func (l *loop) wait(d time.Duration, over <-chan struct{}) error {
	select {
	case <-time.After(d):
	case <-over:
	case <-l.joinCtx.Done():
	}
	return l.joinCtx.Err()
}

// enter records the outcome of a join.
func (l *loop) enter(j joined) event {
	if j.err != nil {
		return startFailed{j.err}
	}
	l.revoked = nil
	l.round, l.over = j.round, j.round.Done()
	l.gang, l.exits, l.started, l.backoff = j.gang, j.gang.Exits(), time.Now(), j.backoff
	l.ended = make(chan launcher.Exit, j.round.Node.Nproc)
	l.watchProgress(j.stamps)
	return started{j.round.Node.Nproc}
}

var _ Gang = (*launcher.Gang)(nil)

// text says what an interrupt does, and what the next one will do.
func (a answer) text(grace time.Duration) string {
	name, whom := signalName(a.sig), plural(a.left, "worker", "workers")
	if a.left == 0 {
		whom = "what the workers left behind"
	}
	switch {
	case a.left < 0 && a.kills:
		return name + ": ending at once"
	case a.left < 0:
		return name + ": ending; no worker runs here. Another signal ends this at once"
	case a.kills || grace == 0:
		return fmt.Sprintf("%s: killing %s", name, whom)
	default:
		return fmt.Sprintf("%s: stopping %s, and killing what has not ended in %v. Another signal kills at once", name, whom, grace)
	}
}

// suspend suspends the gang and then this process, and continues them in the reverse order. The time in between does not count.
func (l *loop) suspend() {
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
