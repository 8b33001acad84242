package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/launcher"
)

// A world is what the machine acts on, as far as the invariants of the package comment can see it. It knows
// nothing of how the machine decides.
type world struct {
	t           *rapid.T
	m           machine
	history     []string
	maxRestarts int

	joinPending, gangLives, finished bool
	alive                            []int // ranks that have not been reported
	interrupts, cancels, failures    int   // failures: gangs that ended for this reason
	entered                          bool  // the last join has led to a gang

	// Of the last gang:
	reason       string // the first reason to stop it
	stops, kills int
	told         []int // ranks that were announced
	exits        []launcher.Exit
}

// TestInvariants checks the list in the package comment over random histories that could happen.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxRestarts := rapid.IntRange(0, 3).Draw(t, "max restarts")
		w := &world{t: t, maxRestarts: maxRestarts, m: machine{maxRestarts: maxRestarts}}
		w.obey(w.m.begin())
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			kind := rapid.SampledFrom(w.possible()).Draw(t, "kind")
			w.happen(rapid.SampledFrom(kind).Draw(t, "event"))
		}
		// Whatever has happened, an interrupt brings the job to its end.
		w.happen(sigint)
		for range 3 + len(w.alive) {
			switch {
			case w.joinPending:
				w.happen(startFailed{errNoRound})
			case len(w.alive) > 0:
				w.happen(asked(exited(w.alive[0], 143)))
			case w.gangLives:
				w.happen(gangGone{})
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
	kinds := [][]event{{roundOver{errNewcomer}, sigint, signalled{syscall.SIGUSR1}}}
	if w.joinPending {
		kinds = append(kinds, []event{started{3}, started{3}, started{3}, startFailed{errNoRound}})
	}
	if w.gangLives && len(w.alive) == 0 {
		kinds = append(kinds, []event{gangGone{}})
	}
	var events []event
	for _, rank := range w.alive {
		for _, code := range []int{0, 0, 0, 1, NoRestart, 137} {
			events = append(events, exited(rank, code)) // it may have been under way when the stop was asked for
			if w.stops+w.kills > 0 {
				events = append(events, asked(exited(rank, code)))
			}
		}
		crash := exited(rank, 137)
		crash.Signal = syscall.SIGKILL
		events = append(events, crash)
	}
	if len(events) > 0 {
		kinds = append(kinds, events)
	}
	return kinds
}

// happen changes the world by e, lets the machine answer, and holds it to the invariants.
func (w *world) happen(e event) {
	wasFinished := w.finished
	running := w.gangLives && w.reason == ""
	switch e := e.(type) {
	case started:
		w.joinPending, w.gangLives, w.entered = false, true, true
		w.reason, w.stops, w.kills, w.exits, w.told = "", 0, 0, nil, nil
		if w.interrupts > 0 {
			w.reason = "interrupt"
		}
		w.alive = []int{0, 1, 2}
	case startFailed:
		w.joinPending = false
	case workerExited:
		w.alive = slices.DeleteFunc(w.alive, func(rank int) bool { return rank == e.Rank })
		w.exits = append(w.exits, e.Exit)
		if running && e.Failed() {
			w.reason = "failure"
		}
	case gangGone:
		w.gangLives = false
		if w.reason == "failure" {
			w.failures++
		}
	case roundOver:
		if running {
			w.reason = "round"
		}
	case interrupted:
		w.interrupts++
		if running {
			w.reason = "interrupt"
		}
	}
	actions := w.m.Step(e)
	w.history = append(w.history, fmt.Sprintf("%T%v -> %s, %s", e, e, w.m.state, show(actions)))
	w.check(7, !wasFinished || len(actions) == 0, "something is asked for after the end")
	w.obey(actions)
	if w.gangLives {
		w.check(10, w.reason != "failure" || len(w.alive) == 0 || len(w.told) == 1, "a failure is kept to itself")
		w.check(5, (w.reason == "") == (w.stops+w.kills == 0), "stopped without a reason, or not in spite of one")
		w.check(6, w.interrupts < 2 || w.kills == 1, "the second interrupt does not kill")
	} else {
		w.check(6, !w.joinPending || w.interrupts < 2 || w.cancels == 1, "the second interrupt does not end a start")
		w.check(7, w.joinPending != w.finished, "nothing is left, and nothing follows")
	}
}

// obey does to the world what the machine asks for.
func (w *world) obey(actions []action) {
	for _, a := range actions {
		switch a := a.(type) {
		case join:
			w.check(1, !w.joinPending && !w.gangLives, "two gangs")
			w.check(2, w.interrupts == 0, "started after an interrupt")
			w.check(3, a.restarts == w.failures && a.restarts <= w.maxRestarts, "wrong count of restarts")
			w.check(4, !w.refused(), "started again after NoRestart")
			w.check(10, a.failed == (w.reason == "failure") && (!a.failed || len(w.told) == 1), "a failure that leads to a restart is kept to itself")
			w.joinPending, w.entered = true, false
		case cancelJoin:
			w.check(2, w.joinPending && w.interrupts > 0, "cancels no join, or for no reason")
		case cancelStart:
			w.cancels++
			w.check(6, w.joinPending && w.interrupts >= 2 && w.cancels == 1, "cancels no start, too early, or twice")
		case stop:
			w.stops++
			w.check(5, w.gangLives && w.stops == 1, "stops nobody, or twice")
		case kill:
			w.kills++
			w.check(6, w.gangLives && w.interrupts >= 2 && w.kills == 1, "kills nobody, too early, or twice")
		case forward:
			w.check(5, w.gangLives && w.reason == "", "a signal for nobody")
		case announce:
			w.told = append(w.told, a.Rank)
			last := w.exits[len(w.exits)-1]
			w.check(10, len(w.told) == 1 && w.reason == "failure" && w.stops == 1, "announced twice, or what did not stop the gang")
			w.check(10, last.Rank == a.Rank && last.Failed() && a.others == len(w.alive), "the wrong worker is announced")
		case finish:
			w.check(7, !w.joinPending && !w.gangLives && !w.finished, "finished too early, or twice")
			w.finished = true
			w.checkEnd(a.err)
		}
	}
}

func (w *world) refused() bool {
	return slices.ContainsFunc(w.exits, func(x launcher.Exit) bool { return x.Code == NoRestart })
}

func (w *world) checkEnd(err error) {
	clean := w.entered && !slices.ContainsFunc(w.exits, launcher.Exit.Failed)
	w.check(8, (err == nil) == clean, fmt.Sprintf("wrong end: %v", err))
	var worker *WorkerError
	if errors.As(err, &worker) {
		first := slices.IndexFunc(w.exits, launcher.Exit.Failed)
		if crash := slices.IndexFunc(w.exits, func(x launcher.Exit) bool { return x.Signal == syscall.SIGKILL && !x.Stopped }); crash >= 0 {
			first = crash
		}
		if w.reason != "failure" {
			first = slices.IndexFunc(w.exits, func(x launcher.Exit) bool { return x.Code == NoRestart })
		}
		w.check(9, first >= 0 && worker.Root.Rank == w.exits[first].Rank, "wrong root cause")
		w.check(9, w.reason != "failure" || !worker.Root.Stopped, "a stopped worker is accused")
		w.check(9, w.reason != "interrupt", "a worker is accused of an interrupt")
	}
}
