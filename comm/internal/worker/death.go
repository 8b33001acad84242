package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
)

// A DeathError says that the process of a rank has ended, as its agent says.
type DeathError struct{ death.Death }

func (e *DeathError) Error() string {
	return Describe(e.String(), e.OutOfMemory, e.ExitCode == -9, e.Stderr)
}

// Describe says how a process ended: the reason and, if there is one, its last line on stderr.
func Describe(reason string, outOfMemory, killed bool, stderr []string) string {
	switch {
	case outOfMemory && killed:
		reason += ", out of memory"
	case outOfMemory:
		reason += ", and the kernel has killed a process on its node because memory ran out"
	}
	if n := len(stderr); n > 0 {
		reason += fmt.Sprintf(", after %q on stderr", stderr[n-1])
	}
	return reason
}

// onFinal fails all groups of w if its round is over. Otherwise the agent is gone, and nobody will say that the round is over.
func (w *World) onFinal() {
	if over := w.round.Over(); over != nil {
		w.Endpoint.Revoke(w.failureOf(*over))
	} else {
		w.Endpoint.NotRevocable()
	}
}

// withDeath returns f, a failure in w, with the death of the rank that it names. If the agent says that other ranks have died, but not this
// one, it returns the failure of the first of them: f may be its consequence. If nobody has died, but the round is over, a rank may have left
// for the next round: then it returns that the round is over. A rank may find a failure before the agent has said anything. So withDeath
// waits for the agent for a while, once in a world.
func (w *World) withDeath(f *diagnosis.Failure) *diagnosis.Failure {
	if _, known := errors.AsType[*DeathError](f.Err); known || f.Kind != diagnosis.PeerFailed && f.Kind != diagnosis.Closed {
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
	first := w.failureOf(*r)
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
func (w *World) failureOf(r env.Round) *diagnosis.Failure {
	for _, d := range r.Died {
		if d.Rank < len(w.Peers) && d.Rank != w.Rank {
			return died(d)
		}
	}
	err := RoundOver(r)
	return &diagnosis.Failure{Kind: diagnosis.Revoked, Rank: w.Rank, Text: err.Error(), Err: err}
}

// died returns the failure of a rank that has died.
func died(d death.Death) *diagnosis.Failure {
	err := &DeathError{d}
	return &diagnosis.Failure{Kind: diagnosis.PeerFailed, Rank: d.Rank, Text: err.Error(), Err: err}
}

// ErrRoundOver is the error of calls that end because gorun is forming another round.
var ErrRoundOver = errors.New("gorun is forming another round")

// RoundOver returns an ErrRoundOver that says how the round has ended.
func RoundOver(r env.Round) error {
	return fmt.Errorf("%w: %w", ErrRoundOver, &membership.OverError{Round: r})
}
