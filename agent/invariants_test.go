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
	exits        []launcher.Exit
	over         error // nil: the round is not over
	reports      []report
	answered     bool // the report
	barrier      bool // is up
	unheard      bool // the report, or the barrier has come to its end
}

// hangsFar is a hang on another node.
var hangsFar = &rendezvous.Failure{Node: "node-b", Rank: 5, Code: 137, Signal: 9, Hung: true}

// hangs is the event that a rank hangs.
func hangs(rank int) hung {
	return hung{launcher.Exit{Rank: rank, LocalRank: rank, Code: 137, Signal: syscall.SIGKILL, Hung: "it made no progress"}}
}

// far is a failure of another node.
var far = failedAt("node-b", exited(5, 4).Exit)

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
	kinds := [][]event{{sigint, signalled{syscall.SIGUSR1}, suspended{}}}
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
		kinds = append(kinds, []event{revocation{launcher.Exit{Rank: w.alive[len(w.alive)-1], Code: 1, Revoked: "rank 0 has left"}}})
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
		crash.Signal = syscall.SIGKILL
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

// happen changes the world by e, lets the machine answer, and holds it to the invariants.
func (w *world) happen(e event) {
	wasFinished := w.finished
	running := w.gangLives && w.reason == ""
	switch e := e.(type) {
	case started:
		w.joinPending, w.gangLives, w.entered, w.joinErr = false, true, true, nil
		refusal := slices.IndexFunc(w.exits, asksForNoRestart)
		last := w.exits
		w.reason, w.stops, w.kills, w.revokes, w.revoked, w.exits, w.told = "", 0, 0, 0, false, nil, nil
		w.over, w.reports, w.answered, w.unheard = nil, nil, false, false
		w.hung, w.revoker, w.diagnosing, w.fails = -1, -1, false, 0
		switch {
		case w.interrupts > 0:
			w.reason = "interrupt"
		case refusal >= 0: // too late to be cancelled
			w.reason, w.exits = "failure", last[refusal:refusal+1]
		}
		w.alive = []int{0, 1, 2}
	case startFailed:
		w.joinPending, w.joinErr = false, e.err
	case workerExited:
		w.alive = slices.DeleteFunc(w.alive, func(rank int) bool { return rank == e.Rank })
		x := e.Exit
		if x.Rank == w.hung {
			if x.Hung, x.Stopped = "hangs", false; !x.Failed() {
				x.Code, x.Signal = 137, syscall.SIGKILL
			}
		}
		if x.Rank == w.revoker {
			if x.Stopped || !x.Failed() {
				x.Code, x.Signal = 1, 0
			}
			x.Revoked, x.Stopped = "revokes", false
		}
		w.exits = append(w.exits, x)
		if running && e.Failed() {
			w.reason = "failure"
		}
	case hung:
		if running {
			w.reason, w.hung, w.diagnosing = "failure", e.Rank, true
		}
	case revocation:
		if running {
			w.reason, w.revoker = "failure", e.Rank
		}
	case diagnosed:
		w.diagnosing = false
	case gangGone:
		w.gangLives = false
	case revoked:
		w.revoked = true
	case roundOver:
		w.over, w.barrier = e.err, false
		if running {
			w.reason, w.diagnosing = "round", isHang(e.err)
		}
	case reported:
		w.answered, w.unheard = true, e.err != nil
	case barrierOver:
		w.barrier, w.unheard = false, true
	case interrupted:
		w.diagnosing = false
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
		w.check(3, (w.reason == "failure") == (len(w.reports) == 1), "a failure is not reported at once, or something else is")
		w.check(5, (w.reason == "" || w.diagnosing) == (w.stops+w.kills+w.revokes == 0), "stopped without a reason, or not in spite of one")
		w.check(11, (w.hung >= 0 && !w.diagnosing) == (w.fails == 1), "who hangs is killed before it is known what all do, or is not killed")
		w.check(6, w.interrupts < 2 || w.kills == 1, "the second interrupt does not kill")
		w.check(10, w.reason != "failure" || w.diagnosing || len(w.alive) == 0 || len(w.told) == 1, "a failure is kept to itself")
	} else {
		waits := w.entered && w.over == nil && len(w.reports) == 1 && !w.unheard && w.interrupts == 0
		w.check(6, !w.joinPending || w.interrupts < 2 || w.cancels == 1, "the second interrupt does not end a start")
		w.check(7, w.joinPending || w.finished || waits || w.diagnosing, "nothing is left, and nothing follows")
		w.check(7, !w.joinPending || !w.finished, "finished, and something follows")
	}
}

// obey does to the world what the machine asks for.
func (w *world) obey(actions []action) {
	for _, a := range actions {
		switch a := a.(type) {
		case join:
			w.check(1, !w.joinPending && (!w.gangLives || w.revokes == 1 && w.stops == 0 && w.areGone()), "two gangs")
			w.check(2, w.interrupts == 0, "started after an interrupt")
			w.check(3, !w.entered || errors.Is(w.over, rendezvous.ErrNewRound), "started again before the round is over, or after the job")
			w.check(4, !w.refused(), "started again after NoRestart")
			w.check(10, w.reason != "failure" || len(w.told) == 1, "a failure that leads to a restart is kept to itself")
			w.joinPending, w.entered, w.barrier = true, false, false
		case cancelJoin:
			w.check(2, w.joinPending && (w.interrupts > 0 || w.refused()), "cancels no join, or for no reason")
		case cancelStart:
			w.cancels++
			w.check(6, w.joinPending && w.interrupts >= 2 && w.cancels == 1, "cancels no start, too early, or twice")
		case diagnose:
			w.check(11, w.diagnosing && (a.hung == nil) == (w.hung < 0), "nobody hangs")
		case fail:
			w.fails++
			w.check(11, a.Rank == w.hung && w.fails == 1 && w.stops+w.revokes+w.kills == 0, "the wrong worker is killed, twice, or too late")
		case stop:
			w.stops++
			w.check(5, w.gangLives && w.stops == 1, "stops nobody, or twice")
			if w.revokes > 0 {
				closed := errors.Is(w.over, rendezvous.ErrClosed)
				w.check(5, w.interrupts > 0 || closed || w.unheard || w.joinErr != nil || w.refused(), "survivors are stopped for no reason")
			}
		case revoke:
			w.revokes++
			w.check(5, w.m.replace && w.gangLives && w.stops == 0 && w.revokes == 1 && w.reason != "interrupt", "revokes nobody, twice, or for an interrupt")
		case kill:
			w.kills++
			w.check(6, w.gangLives && w.interrupts >= 2 && w.kills == 1, "kills nobody, too early, or twice")
		case forward:
			w.check(5, w.gangLives && w.reason == "", "a signal for nobody")
		case announce:
			w.told = append(w.told, a.Rank)
			first, others := max(w.hung, w.revoker), len(w.alive)
			if first < 0 {
				first = w.exits[w.firstFailure()].Rank
			} else if slices.Contains(w.alive, first) {
				others--
			}
			w.check(10, len(w.told) == 1 && w.reason == "failure" && (w.stops+w.revokes == 1 || !w.gangLives), "announced twice, or what did not stop the gang")
			w.check(10, first == a.Rank && a.others == others, "the wrong worker is announced")
		case report:
			w.reports = append(w.reports, a)
			w.checkReport(a.failed)
		case barrier:
			w.check(3, len(w.reports) == 1 && w.reports[0].failed == nil && w.answered && w.over == nil && !w.barrier, "waits for nobody, or twice")
			w.barrier = true
		case finish:
			w.check(7, !w.joinPending && !w.gangLives && !w.finished, "finished too early, or twice")
			w.finished, w.barrier = true, false
			w.checkEnd(a.err)
			w.check(11, w.hung < 0 || len(w.told) == 1, "nobody learns what the workers were doing")
			w.check(8, errors.Is(a.why, a.err) || a.err == nil && w.interrupts > 0 && w.reason != "", "the rendezvous is told something else")
		}
	}
}

func (w *world) checkReport(failed *launcher.Exit) {
	w.check(3, len(w.reports) == 1 && w.over == nil, "reported twice, or after the round")
	if failed == nil {
		w.check(3, !w.gangLives && w.firstFailure() < 0 && w.reason == "", "the success of a gang that lives, or of another")
		return
	}
	first := max(w.hung, w.revoker)
	if first < 0 {
		first = w.exits[w.firstFailure()].Rank
	}
	w.check(3, w.reason == "failure" && failed.Rank == first, "the wrong failure is reported")
}

// areGone reports whether nobody is left that a revoke has ended.
func (w *world) areGone() bool {
	return !slices.ContainsFunc(w.alive, func(rank int) bool { return rank == w.hung || !slices.Contains(w.outlives, rank) })
}

func (w *world) firstFailure() int { return slices.IndexFunc(w.exits, launcher.Exit.Failed) }

func (w *world) refused() bool {
	return slices.ContainsFunc(w.exits, func(x launcher.Exit) bool { return x.Code == NoRestart })
}

func (w *world) checkEnd(err error) {
	over := w.joinErr
	if w.entered {
		over = w.over
	}
	var closed *rendezvous.ClosedError
	decided := errors.As(over, &closed) && (w.entered && w.reason != "interrupt" || w.interrupts == 0)
	success := w.entered && w.firstFailure() < 0
	if decided {
		success = closed.Outcome.Success()
	}
	w.check(7, !w.entered || over != nil || w.unheard || w.interrupts > 0, "does not wait for what the rendezvous decides")
	w.check(8, (err == nil) == success, fmt.Sprintf("wrong end: %v", err))
	var worker *WorkerError
	if !errors.As(err, &worker) {
		w.check(9, !decided || success || closed.Outcome.Failure == nil, "nobody is named for a failure")
		return
	}
	w.check(9, w.reason != "interrupt", "a worker is named for an interrupt")
	if decided && (w.reason != "failure" || closed.Outcome.Failure == far || closed.Outcome.Failure == hangsFar) {
		w.check(9, worker.Elsewhere == closed.Outcome.Failure && worker.Root.Rank == far.Rank, "the failure of another node is not named")
		return
	}
	w.check(9, worker.Elsewhere == nil, "another node is named")
	root := w.firstFailure()
	crash := slices.IndexFunc(w.exits, func(x launcher.Exit) bool { return x.Signal == syscall.SIGKILL && !x.Stopped })
	if crash >= 0 {
		root = crash
	}
	failing := slices.IndexFunc(w.exits, func(x launcher.Exit) bool { return x.Rank == w.hung || x.Rank == w.revoker })
	if failing >= 0 && (crash < 0 || crashed(w.exits[failing])) {
		root = failing
	}
	if w.reason != "failure" {
		root = slices.IndexFunc(w.exits, func(x launcher.Exit) bool { return x.Code == NoRestart })
	}
	w.check(9, root >= 0 && worker.Root.Rank == w.exits[root].Rank, "wrong root cause")
	w.check(9, w.reason != "failure" || !worker.Root.Stopped, "a stopped worker is named")
}
