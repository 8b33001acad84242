package agent

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// A world is what the machine acts on, as far as the invariants of the package comment can see it. It knows
// nothing of how the machine decides.
type world struct {
	t       *rapid.T
	m       stateMachine
	history []string

	joinPending, gangLives, finished bool
	outlives                         []int // ranks that would live on when their round is over
	alive                            []int // ranks that have not been reported
	interrupts, cancels              int
	entered                          bool  // the last join has led to a gang
	joinErr                          error // how it ended if not

	// Of the last gang and its round:
	reason       string // the first reason to stop it
	stops, kills int
	revokes      int
	revoked      bool  // which nobody is left of that it has ended
	told         []int // ranks that were announced
	hung         int   // the rank that hangs; -1: none of this node
	revoker      int   // the rank that has revoked the round; -1: none of this node
	diagnosing   bool
	fails        int
	exits        []death.Death
	over         error // nil: the round is not over
	reports      []report
	answered     bool // the report
	barrier      bool // is up
	unheard      bool // the report, or the barrier has come to its end
}

// hangsFar is a hang on another node.
var hangsFar = &rendezvous.Failure{Death: death.Death{Rank: 5, ExitCode: -9, Cause: death.Hang}, Node: "node-b"}

// hangs is the event that a rank hangs.
func hangs(rank int) hung {
	return hung{death.Death{Rank: rank, LocalRank: rank, ExitCode: -int(syscall.SIGKILL), Cause: death.Hang, Why: "it made no progress"}}
}

// far is a failure of another node.
var far = failedAt("node-b", exited(5, 4).Death)

// TestInvariants checks the list in the package comment over random histories that could happen.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, hung: -1, revoker: -1, m: stateMachine{replace: rapid.Bool().Draw(t, "replace")}}
		if w.m.replace {
			w.outlives = []int{0, 1, 2}[:rapid.IntRange(0, 3).Draw(t, "survivors")]
		}
		w.obey(w.m.begin())
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			kind := rapid.SampledFrom(w.possible()).Draw(t, "kind")
			w.happen(rapid.SampledFrom(kind).Draw(t, "event"))
		}
		// Whatever has happened, an interrupt brings the job to its end.
		w.happen(sigint)
		for range 5 + len(w.alive) {
			switch {
			case w.joinPending && rapid.Bool().Draw(t, "start ends first") || w.joinPending && !w.gangLives:
				w.happen(startFailed{errNoRound})
			case len(w.alive) > 0:
				w.happen(asked(exited(w.alive[0], 143)))
			case w.gangLives:
				w.happen(gangGone{})
			case w.diagnosing:
				w.happen(diagnosed{})
			}
		}
		w.check(7, w.finished, "the job never finishes")
	})
}

func (w *world) check(number int, holds bool, broken string) {
	w.t.Helper()
	if !holds {
		w.t.Fatalf("invariant %d: %s, after:\n  %s", number, broken, strings.Join(w.history, "\n  "))
	}
}

// possible lists what could happen next, by kind, so that no kind crowds out another.
func (w *world) possible() [][]event {
	kinds := [][]event{{sigint, timedOut{}, signalled{syscall.SIGUSR1}, suspended{}, commanded{Command{Kind: rapid.SampledFrom([]CommandKind{
		CommandStop, CommandKill, CommandRestart, CommandScale, CommandStacks, CommandDrain}).Draw(w.t, "command")}}}}
	if w.joinPending {
		kinds = append(kinds, []event{started{3}, started{3}, started{3},
			startFailed{errNoRound}, startFailed(succeeded), startFailed{closedBy(far)}})
	}
	if w.entered && w.over == nil && !w.joinPending {
		kinds = append(kinds, w.ends())
	}
	if len(w.reports) == 1 && !w.answered && !w.joinPending {
		kinds = append(kinds, []event{reported{nil}, reported{nil}, reported{errAway}})
	}
	if w.barrier {
		kinds = append(kinds, []event{barrierOver{}})
	}
	if w.diagnosing {
		kinds = append(kinds, []event{diagnosed{}})
	}
	if w.gangLives && !w.joinPending && len(w.alive) > 0 { // also too late
		kinds = append(kinds, []event{hangs(w.alive[0])})
	}
	if w.m.replace && w.gangLives && !w.joinPending && len(w.alive) > 0 { // also too late
		kinds = append(kinds, []event{revocation{death.Death{Rank: w.alive[len(w.alive)-1], ExitCode: 1, Cause: death.Revoked, Why: "rank 0 has left"}}})
	}
	if w.gangLives && len(w.alive) == 0 {
		kinds = append(kinds, []event{gangGone{}})
	}
	if w.revokes > 0 && !w.revoked && w.areGone() {
		kinds = append(kinds, []event{revoked{}})
	}
	var events []event
	for _, rank := range w.alive {
		for _, code := range []int{0, 0, 0, 0, 1, NoRestart, 137} {
			events = append(events, exited(rank, code)) // it may have been under way when the stop was asked for
			if w.stops+w.kills > 0 || w.revokes > 0 && !slices.Contains(w.outlives, rank) {
				events = append(events, asked(exited(rank, code)))
			}
		}
		crash := exited(rank, 137)
		crash.ExitCode = -int(syscall.SIGKILL)
		events = append(events, crash)
	}
	if len(events) > 0 {
		kinds = append(kinds, events)
	}
	return kinds
}

// ends are those that the round can come to.
func (w *world) ends() []event {
	ends := []event{newRound, roundOver{closedBy(far)}, roundOver{reasoned}, roundOver{&rendezvous.NewRoundError{Failure: hangsFar}}, roundOver{closedBy(hangsFar)}}
	for _, r := range w.reports {
		if r.failed == nil {
			ends = append(ends, succeeded, succeeded)
		} else {
			ends = append(ends, newRound, roundOver{closedBy(failedAt("here", *r.failed))})
		}
	}
	return ends
}
