package agent

import (
	"errors"
	"slices"
	"syscall"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// This file is the part of Step about workers that have failed, and have not ended yet. There are two kinds.
//
// A worker hangs: the other nodes learn of it while it still runs, and every node finds out what its workers are doing before it stops them.
// A worker has revoked its round: it lives on like the others, or is stopped with them.

// isHang reports whether a round is over because a worker hangs.
func isHang(over error) bool {
	if again, ok := errors.AsType[*rendezvous.NewRoundError](over); ok {
		return again.Failure != nil && again.Failure.Cause == death.Hang
	}
	closed, ok := errors.AsType[*rendezvous.ClosedError](over)
	return ok && closed.Outcome.Failure != nil && closed.Outcome.Failure.Cause == death.Hang
}

func (m *stateMachine) onHung(x death.Death) []action {
	if m.state != running || m.indexOf(x.Rank) >= 0 {
		return nil
	}
	m.reason, m.failing = failure, &x
	m.become(diagnosing, describe(x))
	return []action{report{&x}, diagnose{&x}}
}

func (m *stateMachine) onDiagnosed() []action {
	if m.state != diagnosing {
		return nil
	}
	return m.endHang(syscall.SIGTERM)
}

// endHang kills the worker that hangs, if it is on this node, and ends the gang.
func (m *stateMachine) endHang(sig syscall.Signal) (todo []action) {
	left := m.workers - len(m.exits)
	if m.failing != nil {
		todo = append(todo, fail{*m.failing})
		if m.indexOf(m.failing.Rank) < 0 {
			left--
		}
		m.announced = true
	}
	switch {
	case !m.gang: // all have ended meanwhile
		todo = nil
	case m.interrupt != 0:
		m.become(stopping, interrupted{m.interrupt, m.by}.name())
		todo = append(todo, stop{sig})
	default:
		todo = append(todo, m.stop(m.reason, sig, m.why)...)
	}
	if m.failing != nil {
		todo = append(todo, announce{*m.failing, left})
	}
	if !m.gang {
		m.become(stopping, "the gang is gone")
		todo = append(todo, m.next()...)
	}
	return todo
}

func (m *stateMachine) onRevocation(x death.Death) []action {
	if m.state != running || m.indexOf(x.Rank) >= 0 {
		return nil
	}
	m.failing, m.announced = &x, true
	return append(m.stop(failure, syscall.SIGTERM, describe(x)), report{&x}, announce{x, m.workers - len(m.exits) - 1})
}

// withFailure returns the exit of a worker. If the worker had failed before it ended, the exit gets the cause of that failure.
func (m *stateMachine) withFailure(x death.Death) death.Death {
	if m.failing == nil || m.failing.Rank != x.Rank {
		return x
	}
	wasStopped := x.Stopped && m.failing.Cause == death.Revoked // the agent's signal has caused its exit code
	x.Cause, x.Why, x.Stopped = m.failing.Cause, m.failing.Why, false
	if !x.Failed() || wasStopped {
		x.ExitCode = m.failing.ExitCode
	}
	return x
}

// failures returns the exits, and at the end the failure of a worker that has not ended.
func (m *stateMachine) failures() []death.Death {
	if m.failing == nil || m.indexOf(m.failing.Rank) >= 0 {
		return m.exits
	}
	return append(slices.Clip(m.exits), *m.failing)
}

// first returns the index in failures of the one that is the reason to stop the gang.
func (m *stateMachine) first() int {
	if m.failing == nil {
		return m.root
	}
	return slices.IndexFunc(m.failures(), func(x death.Death) bool { return x.Rank == m.failing.Rank })
}

// indexOf returns the index of the exit of a rank; -1: it has not ended.
func (m *stateMachine) indexOf(rank int) int {
	return slices.IndexFunc(m.exits, func(x death.Death) bool { return x.Rank == rank })
}
