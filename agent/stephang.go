package agent

import (
	"errors"
	"slices"
	"syscall"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// This file is the part of Step about workers that hang. Such a worker has failed before it ends. So the other nodes learn of it while it
// still runs, and every node finds out what its workers are doing before it stops them.

// isHang reports whether a round is over because a worker hangs.
func isHang(over error) bool {
	if again, ok := errors.AsType[*rendezvous.NewRoundError](over); ok {
		return again.Failure != nil && again.Failure.Hung
	}
	closed, ok := errors.AsType[*rendezvous.ClosedError](over)
	return ok && closed.Outcome.Failure != nil && closed.Outcome.Failure.Hung
}

func (m *stateMachine) onHung(x launcher.Exit) []action {
	if m.state != running || m.indexOf(x.Rank) >= 0 {
		return nil
	}
	m.reason, m.hung = failure, &x
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
	if m.hung != nil {
		todo = append(todo, fail{*m.hung})
		if m.indexOf(m.hung.Rank) < 0 {
			left--
		}
		m.announced = true
	}
	switch {
	case !m.gang: // all have ended meanwhile
		todo = nil
	case m.interrupt != 0:
		m.become(stopping, signalName(m.interrupt))
		todo = append(todo, stop{sig})
	default:
		todo = append(todo, m.stop(m.reason, sig, m.why)...)
	}
	if m.hung != nil {
		todo = append(todo, announce{*m.hung, left})
	}
	if !m.gang {
		m.become(stopping, "the gang is gone")
		todo = append(todo, m.next()...)
	}
	return todo
}

// withHang returns the exit of a worker. If it hangs, that is why it has failed, however it ends.
func (m *stateMachine) withHang(x launcher.Exit) launcher.Exit {
	if m.hung == nil || m.hung.Rank != x.Rank {
		return x
	}
	m.root = len(m.exits)
	x.Hung, x.Stopped = m.hung.Hung, false
	if !x.Failed() {
		x.Code, x.Signal = m.hung.Code, m.hung.Signal
	}
	return x
}

// indexOf returns the index of the exit of a rank; -1: it has not ended.
func (m *stateMachine) indexOf(rank int) int {
	return slices.IndexFunc(m.exits, func(x launcher.Exit) bool { return x.Rank == rank })
}
