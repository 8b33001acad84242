package comm

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/env/rounds"
)

// onOver fails all groups of the world whose round is over.
func onOver(r rounds.Round) {
	for _, g := range life.worlds.all() {
		if w := g.world; w.end.round == r.Round {
			w.end.said(&r)
			w.Endpoint.Revoke(failureOf(w, r))
		}
	}
}

// onEnd tells all worlds that the agent says no more.
func onEnd() {
	for _, g := range life.worlds.all() {
		g.world.end.said(nil)
		g.world.Endpoint.NotRevocable()
	}
}

// A roundEnd is what the agent says of the end of a world's round.
type roundEnd struct {
	round int // 0: this process ends with it
	last  atomic.Pointer[rounds.Round]
	isIn  sync.Once
	in    chan struct{} // closed when last is set, or will not be
}

func newRoundEnd(round int) *roundEnd { return &roundEnd{round: round, in: make(chan struct{})} }

// said takes in the last word, which is nil if there will be none.
func (e *roundEnd) said(r *rounds.Round) {
	if r != nil {
		e.last.Store(r)
	}
	e.isIn.Do(func() { close(e.in) })
}

// explain returns f, a failure in w, as the agent knows it: who has died, and how. A rank may find a failure before the agent has said
// so, and take a consequence for the cause. So explain waits for the agent's word for a while, once in a world.
func (w *world) explain(f *diagnosis.Failure) *diagnosis.Failure {
	if _, known := errors.AsType[*Death](f.Err); known || w.end.round == 0 || f.Kind != diagnosis.PeerFailed && f.Kind != diagnosis.Closed {
		return f
	}
	if f.Kind == diagnosis.PeerFailed {
		select {
		case <-w.end.in:
		case <-time.After(endpoint.RevokeTimeout):
			w.end.said(nil)
		}
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

// failureOf is what the end of its round means to w.
func failureOf(w *world, r rounds.Round) *diagnosis.Failure {
	for _, d := range r.Died {
		if d.Rank < len(w.Peers) && d.Rank != w.Rank {
			return died(d)
		}
	}
	err := errOver(r)
	return &diagnosis.Failure{Kind: diagnosis.Revoked, Rank: w.Rank, Text: err.Error(), Err: err}
}

func died(d rounds.Death) *diagnosis.Failure {
	death := deathOf(d)
	return &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: d.Rank, Text: death.Error(), Err: death}
}

// overError is the error of op, in which a world did not come to be because its round is over.
func overError(op string, r rounds.Round) error {
	if len(r.Died) == 0 {
		return fmt.Errorf("comm: %s: %w", op, errOver(r))
	}
	d := r.Died[0]
	death := deathOf(d)
	return &PeerError{Rank: d.Rank, Host: d.Host, PID: d.Pid, Op: op, Err: death, Death: death, Finder: d.Rank}
}

func errOver(r rounds.Round) error { return fmt.Errorf("%w: that was round %d", ErrRoundOver, r.Round) }

func deathOf(d rounds.Death) *Death { return &Death{d.ExitCode, d.OutOfMemory, d.Reason, d.Stderr} }
