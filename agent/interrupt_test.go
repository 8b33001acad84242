package agent

import (
	"syscall"
	"testing"

	"github.com/gorun/gorun/launcher"
)

// departs stops the gang, and tells the others.
func departs(sig syscall.Signal) []action { return []action{stop{sig}, leave{sig}} }

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
			{sigint, []action{kill{}}},
			{sigint, nil},
			{workerExited{launcher.Exit{Code: 137, Signal: syscall.SIGKILL, Stopped: true}}, nil},
			{gangGone{}, stopped(syscall.SIGINT, 1)},
		}, done},
		{"interrupt cancels a pending restart", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{newRound, nil},
			{sigint, nil},
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
			{sigint, nil},
			{asked(exited(0, 143)), nil},
			{gangGone{}, stopped(syscall.SIGINT, 0)},
		}, done},
		{"interrupt obeyed while stopping for a new round", []step{
			{started{3}, nil},
			{newRound, termAll},
			{sigint, nil},
			{asked(exited(0, 0)), nil},
			{gangGone{}, obeyed(syscall.SIGINT)},
		}, done},
		{"two interrupts while joining again", []step{
			{started{3}, nil},
			{newRound, termAll},
			{asked(exited(0, 143)), nil},
			{gangGone{}, again},
			{sigint, []action{cancelJoin{}}},
			{sigint, []action{cancelStart{}}},
			{startFailed{errNoRound}, stopped(syscall.SIGINT, 0)},
		}, done},
		{"second interrupt while stopping for a restart", []step{
			{started{3}, nil},
			{exited(0, 3), tell(exited(0, 3), 2)},
			{sigint, nil},
			{sigint, []action{kill{}}},
		}, stopping},
		{"interrupt while joining", []step{
			{sigint, []action{cancelJoin{}}},
			{startFailed{errNoRound}, stopped(syscall.SIGINT, 0)},
		}, done},
		{"interrupt while joining comes too late", []step{
			{sigint, []action{cancelJoin{}}},
			{started{3}, departs(syscall.SIGINT)},
			{sigint, []action{kill{}}},
		}, stopping},
		{"two interrupts while joining", []step{
			{sigint, []action{cancelJoin{}}},
			{sigterm, []action{cancelStart{}}},
			{sigterm, nil},
			{started{3}, []action{kill{}}},
		}, stopping},
	})
}
