package comm

import (
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/env/rounds"
)

// isOver reports whether the agent has said that the round of w is over.
func (w *world) isOver() bool { return w.round != nil && w.round.Over() != nil }

// onFinal fails all groups of w if its round is over. Otherwise the agent is gone, and nobody will say that the round is over.
func (w *world) onFinal() {
	if over := w.round.Over(); over != nil {
		w.Endpoint.Revoke(failureOf(w, *over))
	} else {
		w.Endpoint.NotRevocable()
	}
}

// withDeath returns f, a failure in w, with the death of the rank that it names. If the agent says that other ranks have died, but not this
// one, it returns the failure of the first of them: f may be its consequence. If nobody has died, but the round is over, a rank may have left
// for the next round: then it returns that the round is over. A rank may find a failure before the agent has said anything. So withDeath
// waits for the agent for a while, once in a world.
func (w *world) withDeath(f *diagnosis.Failure) *diagnosis.Failure {
	if _, known := errors.AsType[*Death](f.Err); known || f.Kind != diagnosis.PeerFailed && f.Kind != diagnosis.Closed {
		return f
	}
	w.agentSpeaks.Do(func() {
		select {
		case <-w.round.Final():
		case <-time.After(endpoint.RevokeTimeout):
		}
	})
	r := w.round.Over()
	if r == nil {
		return f
	}
	first := failureOf(w, *r)
	for _, d := range r.Died {
		if d.Rank == f.Rank {
			first = died(d)
		}
	}
	if first.Kind == diagnosis.PeerFailed || f.Kind == diagnosis.Closed {
		return first
	}
	return f
}

// failureOf returns the failure with which w ends because its round is over.
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
