package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

var _ Gang = (*launcher.Gang)(nil)

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
	ran     time.Duration
	backoff backoff
	failed  *gangFailure // nil: none of them failed

	reporting <-chan struct{} // closed when that failure is about to be reported; nil: none is
}

// join joins a round and starts this node's workers in it. It runs in its own goroutine, and uses only fields
// of the loop that never change.
func (l *loop) join(last past) joined {
	if last.reporting != nil { // the report may say whom workers could not reach, which matters to the next round
		select {
		case <-last.reporting:
		case <-l.joinCtx.Done():
		}
	}
	if err := l.awaitHealth(last.round); err != nil {
		return joined{err: err}
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
	if err := prepareAttempt(l.Config, round.Restarts, len(spec.Workers)); err != nil {
		l.Logger.Warn("cannot prepare the error files of the workers", "error", err)
	}
	if last.round != nil { // survivors may write to their last attempt until they have entered this one
		if err := removeAttempts(l.Config, last.round.Restarts); err != nil {
			l.Logger.Warn("cannot remove the error files of earlier attempts", "error", err)
		}
	}
	if err := l.wait(delay, round.Done()); err != nil {
		return joined{err: err}
	}
	stamps := l.prepareProgress(len(spec.Workers))
	l.starting <- struct{}{}
	gang, err := l.startWorkers(last.round, round, spec) // from here on workers may run, and an interrupt lets them end by themselves
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
	if len(l.starting) > 0 {
		<-l.starting
	}
	if j.err != nil {
		l.group.NotEntered()
		return startFailed{j.err}
	}
	l.round, l.over = j.round, j.round.Done()
	l.gang, l.exits, l.started, l.backoff = j.gang, j.gang.Exits(), time.Now(), j.backoff
	l.ended = make(chan death.Death, j.round.Node.Nproc)
	l.watchProgress(j.stamps)
	l.group.Entered(j.gang, j.gang.Pids())
	return started{j.round.Node.Nproc}
}

// logRestart logs why the workers are started again. After a failure, the line begins as torchrun's does. last.round is nil if these
// workers are the first on this node.
func (l *loop) logRestart(round *rendezvous.Round, last past, delay time.Duration) {
	if last.round == nil {
		return
	}
	why := Printable(last.failed.because(round, l.Config, last.round))
	level, text := slog.LevelInfo, "starting the workers again: "+why
	if l.machine.replace {
		text = "going on in another round: " + why
	}
	if isRestart(round, last.round) {
		what := "restart worker group"
		if l.machine.replace {
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

// abandonTimeout is how long a join may take to return after its context has ended. It may hang in a file system that does not
// answer.
const abandonTimeout = 2 * time.Second

// endStart asks the pending join to end now.
func (l *loop) endStart() {
	l.startEnds, l.abandon = nil, time.After(abandonTimeout)
	l.cancelStart()
}

// abandonJoin stops waiting for a join that does not return.
func (l *loop) abandonJoin() event {
	l.Logger.Warn("the start of the workers did not end in time, and gorun does not wait for it")
	go func() {
		if late := <-l.joined; late.gang != nil {
			late.gang.Kill()
			late.gang.Finish()
			for range late.gang.Exits() {
			}
		}
	}()
	return startFailed{context.Cause(l.startCtx)}
}
