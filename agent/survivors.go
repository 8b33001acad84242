package agent

import (
	"context"
	"time"

	"github.com/gorun/gorun/agent/internal/workergroup"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// This file is the part of the loop about the workers of a round: which of them live on, and what becomes of each.

// formed is a round whose workers are about to start. The loop decides which of them do.
type formed struct {
	round, last *rendezvous.Round
	spec        launcher.Spec
	start       chan<- toStart // gets one, and has room for it
}

type toStart struct {
	*workergroup.Start
	gang Gang // in which they are to be started; nil: a new one
	err  error
}

// begin begins a round for those that survive.
func (l *loop) begin(f formed) {
	l.group.Notify(goneSince(f.last, f.round, l.Node.ID))
	start, err := l.group.Begin(f.spec, time.Now())
	next := toStart{Start: start, err: err}
	if l.exits != nil {
		next.gang = l.gang
	}
	f.start <- next
}

// goneSince returns the workers of nodes that were lost after the last round was over.
func goneSince(last, round *rendezvous.Round, self string) []death.Death {
	if last == nil || round.ID != last.ID+1 {
		return nil
	}
	return deathsOf(round.Gone, self)
}

// startWorkers starts the workers of a round, but for survivors. It runs in the goroutine of a join.
func (l *loop) startWorkers(last, round *rendezvous.Round, spec launcher.Spec) (Gang, error) {
	answer := make(chan toStart, 1)
	select {
	case l.formed <- formed{round, last, spec, answer}:
	case <-l.startCtx.Done():
		return nil, context.Cause(l.startCtx)
	}
	next := <-answer
	if next.err != nil {
		return nil, next.err
	}
	gang, err := next.gang, next.Listen()
	switch {
	case err != nil || len(next.Missing) == 0:
	case gang == nil:
		gang, err = l.Start(l.startCtx, next.Spec)
	default:
		err = gang.Replace(l.startCtx, next.Spec, next.Missing)
	}
	if err != nil {
		return nil, err
	}
	next.Started(gang.Pids())
	return gang, nil
}

func (l *loop) onExit(x death.Death, more bool) {
	if more {
		l.group.Exited(x, time.Now())
		return
	}
	l.exits = nil
	l.group.Over()
}

// onEnded is called when nothing is left of a worker.
func (l *loop) onEnded(local int) {
	for len(l.exits) > 0 { // which came before
		l.group.Exited(<-l.exits, time.Now())
	}
	l.group.Ended(local)
}

// ofGroup returns the next event of the group; nil: there is none.
func (l *loop) ofGroup() event {
	l.pending = append(l.pending, l.group.Take()...)
	if len(l.pending) == 0 {
		return nil
	}
	next := l.pending[0]
	l.pending = l.pending[1:]
	switch {
	case next.Exit != nil:
		l.ended <- *next.Exit
		if l.monitor != nil {
			l.monitor.Ended(next.Exit.LocalRank)
		}
		return workerExited{*next.Exit}
	case next.Revocation != nil:
		x := *next.Revocation
		x.Why = Printable(cut(x.Why))
		return revocation{x}
	case next.Revoked:
		return revoked{}
	default:
		l.stopLasts = nil
		return gangGone{}
	}
}

// timer returns a channel that is ready at a time; nil: there is no such time.
func timer(at time.Time) <-chan time.Time {
	if at.IsZero() {
		return nil
	}
	return time.After(time.Until(at))
}

// finishGang ends a gang whose workers might have been replaced, and have ended.
func (l *loop) finishGang() {
	if l.exits != nil {
		l.gang.Finish()
		for range l.exits {
		}
	}
}
