package agent

import (
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
)

// departs stops a gang of three, and tells the others, and whoever has sent the signal.
func departs(sig syscall.Signal) []action {
	return []action{stop{sig}, leave{sig: sig}, answer{sig: sig, left: 3, kills: false}}
}

// says tells whoever has sent a signal what it does; left is negative if there is no gang.
func says(sig syscall.Signal, left int) []action {
	return []action{answer{sig: sig, left: left, kills: false}}
}

// leaves is says after the word to the other nodes.
func leaves(sig syscall.Signal, left int) []action {
	return append([]action{leave{sig: sig}}, says(sig, left)...)
}

// TestStepInterrupt: whole stories with an interrupt.
func TestStepInterrupt(t *testing.T) {
	obeyed := func(sig syscall.Signal) []action { return []action{finish{nil, &InterruptError{Signal: sig}}} }
	stopped := func(sig syscall.Signal, killed int) []action {
		return ends(&InterruptError{Signal: sig, Killed: killed})
	}
	tellStories(t, []story{
		{"an interrupt while the others are waited for", []step{
			{started{3}, nil},
			{gangGone{}, success},
			{sigint, ends(nil)},
		}, done},
		{"interrupt obeyed", []step{
			{started{3}, nil},
			{sigint, departs(syscall.SIGINT)},
			{asked(exited(0, 0)), nil},
			{gangGone{}, obeyed(syscall.SIGINT)},
		}, done},
		{"interrupt with another exit code", []step{
			{started{3}, nil},
			{sigterm, departs(syscall.SIGTERM)},
			{asked(exited(0, 1)), nil},
			{gangGone{}, stopped(syscall.SIGTERM, 0)},
		}, done},
		{"the job ends while an interrupt is obeyed", []step{
			{started{3}, nil},
			{sigterm, departs(syscall.SIGTERM)},
			{roundOver{closedBy(far)}, nil},
			{asked(exited(0, 1)), nil},
			{gangGone{}, stopped(syscall.SIGTERM, 0)},
		}, done},
		{"interrupted twice", []step{
			{started{3}, nil},
			{sigint, departs(syscall.SIGINT)},
			{sigint, []action{kill{}, answer{sig: syscall.SIGINT, left: 3, kills: true}}},
			{sigint, nil},
			{workerExited{death.Death{ExitCode: -int(syscall.SIGKILL), Stopped: true}}, nil},
			{gangGone{}, stopped(syscall.SIGINT, 1)},
		}, done},
		{"interrupt cancels a pending restart", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{newRound, nil},
			{sigint, leaves(syscall.SIGINT, 2)},
			{gangGone{}, ends(&WorkerError{Root: rank0(3), Code: 3})},
		}, done},
		{"interrupt while the rendezvous decides on a restart", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{gangGone{}, nil},
			{sigint, ends(&WorkerError{Root: rank0(3), Code: 3})},
		}, done},
		{"interrupt cancels a pending round", []step{
			{started{3}, nil},
			{newRound, termAll},
			{sigint, leaves(syscall.SIGINT, 3)},
			{asked(exited(0, 143)), nil},
			{gangGone{}, stopped(syscall.SIGINT, 0)},
		}, done},
		{"interrupt obeyed while stopping for a new round", []step{
			{started{3}, nil},
			{newRound, termAll},
			{sigint, leaves(syscall.SIGINT, 3)},
			{asked(exited(0, 0)), nil},
			{gangGone{}, obeyed(syscall.SIGINT)},
		}, done},
		{"two interrupts while joining again", []step{
			{started{3}, nil},
			{newRound, termAll},
			{asked(exited(0, 143)), nil},
			{gangGone{}, again},
			{sigint, append([]action{cancelJoin{}}, says(syscall.SIGINT, -1)...)},
			{sigint, []action{cancelStart{}, answer{sig: syscall.SIGINT, left: -1, kills: true}}},
			{startFailed{errNoRound}, stopped(syscall.SIGINT, 0)},
		}, done},
		{"second interrupt while stopping for a restart", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{sigint, leaves(syscall.SIGINT, 2)},
			{sigint, []action{kill{}, answer{sig: syscall.SIGINT, left: 2, kills: true}}},
		}, stopping},
		{"interrupt while joining", []step{
			{sigint, append([]action{cancelJoin{}}, says(syscall.SIGINT, -1)...)},
			{startFailed{errNoRound}, stopped(syscall.SIGINT, 0)},
		}, done},
		{"interrupt while joining comes too late", []step{
			{sigint, append([]action{cancelJoin{}}, says(syscall.SIGINT, -1)...)},
			{started{3}, departs(syscall.SIGINT)},
			{sigint, []action{kill{}, answer{sig: syscall.SIGINT, left: 3, kills: true}}},
		}, stopping},
		{"two interrupts while joining", []step{
			{sigint, append([]action{cancelJoin{}}, says(syscall.SIGINT, -1)...)},
			{sigterm, []action{cancelStart{}, answer{sig: syscall.SIGTERM, left: -1, kills: true}}},
			{sigterm, nil},
			{started{3}, []action{kill{}}},
		}, stopping},
	})
}

// TestStepSignals: a signal to all processes of a step may end workers before it comes here. This is no failure, and the signal that then
// comes is not a second one.
func TestStepSignals(t *testing.T) {
	of := func(w workerExited, sig syscall.Signal) workerExited {
		w.ExitCode, w.Interrupt, w.Stopped = -int(sig), sig, true
		return w
	}
	early := func(rank int) workerExited { return of(exited(rank, 143), syscall.SIGTERM) }
	departs := []action{stop{syscall.SIGTERM}, leave{sig: syscall.SIGTERM}}
	stopped := ends(&InterruptError{Signal: syscall.SIGTERM})
	tellStories(t, []story{
		{"the signal comes late", []step{
			{started{3}, nil},
			{early(1), departs},
			{early(0), nil},
			{sigterm, says(syscall.SIGTERM, 1)},
			{early(2), nil},
			{gangGone{}, stopped},
		}, done},
		{"it comes after all", []step{
			{started{1}, nil},
			{early(0), departs},
			{gangGone{}, stopped},
			{sigterm, nil},
		}, done},
		{"another one kills", []step{
			{started{3}, nil},
			{early(1), departs},
			{sigterm, says(syscall.SIGTERM, 2)},
			{sigterm, []action{kill{}, answer{sig: syscall.SIGTERM, left: 2, kills: true}}},
		}, stopping},
		{"the time is over, and then a manager sends a signal", []step{
			{started{3}, nil},
			{timedOut{}, []action{stop{syscall.SIGTERM}, leave{sig: syscall.SIGTERM}, answer{sig: syscall.SIGTERM, left: 3, early: true}}},
			{timedOut{}, nil},
			{sigterm, says(syscall.SIGTERM, 3)},
			{sigterm, []action{kill{}, answer{sig: syscall.SIGTERM, left: 3, kills: true}}},
		}, stopping},
		{"the time is over, which the others learn", []step{
			{started{3}, nil},
			{timedOut{errOver}, []action{stop{syscall.SIGTERM}, leave{sig: syscall.SIGTERM, cause: errOver}, answer{sig: syscall.SIGTERM, left: 3, early: true}}},
			{sigterm, says(syscall.SIGTERM, 3)},
			{gangGone{}, []action{finish{nil, &InterruptError{Signal: syscall.SIGTERM, Cause: errOver}}}},
		}, done},
		{"the time is over, and then somebody presses Ctrl-C", []step{
			{started{3}, nil},
			{timedOut{}, []action{stop{syscall.SIGTERM}, leave{sig: syscall.SIGTERM}, answer{sig: syscall.SIGTERM, left: 3, early: true}}},
			{sigint, []action{kill{}, answer{sig: syscall.SIGINT, left: 3, kills: true}}},
		}, stopping},
		{"gorun stop in a preStop hook, and then a manager sends a signal", []step{
			{started{3}, nil},
			{commanded{Command{Kind: CommandStop}}, []action{
				reply{to: Command{Kind: CommandStop}}, stop{syscall.SIGTERM}, leave{sig: syscall.SIGTERM, by: Command{Kind: CommandStop}},
				answer{sig: syscall.SIGTERM, by: Command{Kind: CommandStop}, left: 3, early: true},
			}},
			{sigterm, says(syscall.SIGTERM, 3)},
			{sigterm, []action{kill{}, answer{sig: syscall.SIGTERM, left: 3, kills: true}}},
		}, stopping},
		{"a signal, and then the time is over", []step{
			{started{3}, nil},
			{sigterm, append(departs[:2:2], answer{sig: syscall.SIGTERM, left: 3})},
			{timedOut{}, nil},
		}, stopping},
		{"another signal kills, also before", []step{
			{started{3}, nil},
			{early(1), departs},
			{sigint, []action{kill{}, answer{sig: syscall.SIGINT, left: 2, kills: true}}},
		}, stopping},
		{"a worker that obeyed is no cause", []step{
			{started{2}, nil},
			{workerExited{death.Death{Rank: 1, LocalRank: 1, Pid: 101, Stopped: true, Interrupt: syscall.SIGTERM}}, nil},
			{sigterm, []action{stop{syscall.SIGTERM}, leave{sig: syscall.SIGTERM}, answer{sig: syscall.SIGTERM, left: 1, kills: false}}},
			{asked(exited(0, 0)), nil},
			{gangGone{}, []action{finish{nil, &InterruptError{Signal: syscall.SIGTERM}}}},
		}, done},
		{"a failure stays one", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{early(1), nil},
			{sigterm, leaves(syscall.SIGTERM, 1)},
			{asked(exited(2, 143)), nil},
			{gangGone{}, ends(&WorkerError{Root: rank0(3), Code: 3, Stopped: []death.Death{early(1).Death, asked(exited(2, 143)).Death}})},
		}, done},
	})
}

// TestAnswer: what the sender of a signal reads.
func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		answer
		grace time.Duration
		note  string
		want  string
	}{
		{answer{sig: syscall.SIGINT, left: 4, kills: false}, 30 * time.Second, "", "signal 2 (SIGINT): stopping 4 workers, and killing what has not ended in 30s. Another signal kills at once"},
		{answer{sig: syscall.SIGTERM, left: 4, kills: false}, 25 * time.Second, "it says so", "signal 15 (SIGTERM): stopping 4 workers, and killing what has not ended in 25s (it says so). Another signal kills at once"},
		{answer{sig: syscall.SIGTERM, left: 1, kills: false}, 500 * time.Millisecond, "", "signal 15 (SIGTERM): stopping 1 worker, and killing what has not ended in 500ms. Another signal kills at once"},
		{answer{sig: syscall.SIGINT, left: 0, kills: false}, time.Second, "", "signal 2 (SIGINT): stopping what the workers left behind, and killing what has not ended in 1s. Another signal kills at once"},
		{answer{sig: syscall.SIGINT, left: 4, kills: false}, 0, "", "signal 2 (SIGINT): killing 4 workers"},
		{answer{sig: syscall.SIGINT, left: 2, kills: true}, time.Second, "", "signal 2 (SIGINT): killing 2 workers"},
		{answer{sig: syscall.SIGINT, left: -1, kills: false}, time.Second, "", "signal 2 (SIGINT): ending; no worker runs here. Another signal ends this at once"},
		{answer{sig: syscall.SIGTERM, left: 4, early: true}, time.Second, "", "signal 15 (SIGTERM): stopping 4 workers, and killing what has not ended in 1s. SIGINT kills at once"},
		{answer{sig: syscall.SIGINT, left: -1, kills: true}, time.Second, "", "signal 2 (SIGINT): ending at once"},
	} {
		if got := c.text(c.grace, c.note); got != c.want {
			t.Errorf("%+v: %q, want %q", c.answer, got, c.want)
		}
	}
}

// TestReaderGone: that nobody reads the output any more is the agent's business; workers are asked to end as usual.
func TestReaderGone(t *testing.T) {
	tellStories(t, []story{{"SIGPIPE", []step{
		{started{3}, nil},
		{interrupted{sig: syscall.SIGPIPE}, []action{stop{syscall.SIGTERM}, leave{sig: syscall.SIGPIPE}, answer{sig: syscall.SIGPIPE, left: 3, kills: false}}},
	}, stopping}})
}
