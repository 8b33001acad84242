package comm

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/env/rounds"
)

// onOver fails all groups of the world whose round is over.
func onOver(r rounds.Round) {
	for _, g := range life.worlds.all() {
		if w := g.world; w.end.round == r.Round {
			w.end.record(&r)
			w.Endpoint.Revoke(failureOf(w, r))
		}
	}
}

// onEnd tells all worlds that the agent says no more.
func onEnd() {
	for _, g := range life.worlds.all() {
		g.world.end.record(nil)
		g.world.Endpoint.NotRevocable()
	}
}

// A roundEnd is what the agent has said of the end of a world's round.
type roundEnd struct {
	round int // 0: this process has no rounds
	last  atomic.Pointer[rounds.Round]
	once  sync.Once
	known chan struct{} // closed when last is set, or will not be
}

func newRoundEnd(round int) *roundEnd { return &roundEnd{round: round, known: make(chan struct{})} }

// record records what the agent says. nil: it will say nothing.
func (e *roundEnd) record(r *rounds.Round) {
	if r != nil {
		e.last.Store(r)
	}
	e.once.Do(func() { close(e.known) })
}

// withDeath returns f, a failure in w, with the death of the rank that it names. If the agent knows only of another rank that has died, it
// returns the failure of that rank: f may be a consequence, also if a rank has left, for the next round. A rank may find a failure before the
// agent has spoken, so withDeath waits for that for a while, once in a world.
func (w *world) withDeath(f *diagnosis.Failure) *diagnosis.Failure {
	if _, known := errors.AsType[*Death](f.Err); known || w.end.round == 0 || f.Kind != diagnosis.PeerFailed && f.Kind != diagnosis.Closed {
		return f
	}
	select {
	case <-w.end.known:
	case <-time.After(endpoint.RevokeTimeout):
		w.end.record(nil)
	}
	r := w.end.last.Load()
	if r == nil {
		return f
	}
	first := failureOf(w, *r)
	for _, d := range r.Died {
		if d.Rank == f.Rank {
			first = died(d)
		}
	}
	if first.Kind != diagnosis.PeerFailed {
		return f
	}
	return first
}

// failureOf returns the failure that the end of its round is to w.
func failureOf(w *world, r rounds.Round) *diagnosis.Failure {
	for _, d := range r.Died {
		if d.Rank < len(w.Peers) && d.Rank != w.Rank {
			return died(d)
		}
	}
	err := errOver(r)
	return &diagnosis.Failure{Kind: diagnosis.Revoked, Rank: w.Rank, Text: err.Error(), Err: err}
}

// overError returns the error of op, which found no world because the round was over first.
func overError(op string, r rounds.Round) error {
	if len(r.Died) == 0 {
		return fmt.Errorf("comm: %s: %w", op, errOver(r))
	}
	d := r.Died[0]
	death := deathOf(d)
	return &PeerError{Rank: d.Rank, Host: d.Host, PID: d.Pid, Op: op, Err: death, Death: death, Finder: d.Rank}
}

func errOver(r rounds.Round) error {
	return fmt.Errorf("%w: %w", ErrRoundOver, &membership.OverError{Round: r})
}
