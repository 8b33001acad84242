package agent

import (
	"cmp"
	"syscall"

	"github.com/gorun/gorun/env/death"
)

// This file is the part of Step about what ends the job on this node from outside: signals, gorun stop, and the end of Run's context.

// onInterrupt handles an interrupt: the first asks the workers to end, the second kills them, and further ones do nothing.
func (m *stateMachine) onInterrupt(e interrupted) []action {
	sig := e.sig
	if m.state == done || m.killed {
		return nil
	}
	if m.early && sig == m.interrupt && e.by.Kind == "" {
		m.early = false
		return []action{m.answer(sig, Command{})}
	}
	if m.interrupt != 0 {
		m.killed = true
		var todo []action
		if m.gang {
			todo = append(todo, kill{})
		}
		if m.join {
			todo = append(todo, cancelStart{})
		}
		return append(todo, m.answer(sig, e.by))
	}
	m.interrupt, m.by = sig, e.by
	switch m.state {
	case joining:
		m.become(stopping, e.name())
		return append(append([]action{cancelJoin{}}, m.stopSurvivors()...), m.answer(sig, e.by))
	case running:
		return append(m.depart(sig), m.answer(sig, e.by))
	case diagnosing:
		return append(m.endHang(forWorkers(sig)), leave{sig, e.by, m.cause}, m.answer(sig, e.by))
	case stopping: // already asked to; what is new is that nothing follows
		m.why = e.name()
		return append(m.stopSurvivors(), leave{sig, e.by, m.cause}, m.answer(sig, e.by))
	default:
		return m.onNews()
	}
}

// onTimedOut ends the job as SIGTERM does. If a SIGTERM comes after that, it counts as the first one and kills nobody: a resource manager
// sends one at the end of its own time, which may be soon after.
func (m *stateMachine) onTimedOut(cause error) []action {
	if m.interrupt != 0 || m.state == done {
		return nil
	}
	m.early, m.cause = true, cause
	return m.onInterrupt(interrupted{sig: syscall.SIGTERM})
}

func (m *stateMachine) answer(sig syscall.Signal, by Command) answer {
	left := -1
	if m.gang {
		left = m.workers - len(m.exits)
	}
	return answer{sig, by, left, m.killed, m.early && !m.killed}
}

// depart ends the gang, and says so to the other nodes at once: their workers may lose some of its workers long before the last one ends.
func (m *stateMachine) depart(sig syscall.Signal) []action {
	return append(m.stop(interruption, forWorkers(sig), interrupted{sig, m.by}.name()), leave{sig, m.by, m.cause})
}

// name is what has been asked for, in words.
func (e interrupted) name() string { return cmp.Or(e.by.spelling(), death.SignalName(e.sig)) }

// forWorkers is what workers get for an interrupt; 0: there was none.
func forWorkers(interrupt syscall.Signal) syscall.Signal {
	if interrupt == 0 || interrupt == syscall.SIGPIPE { // which is about the agent's output, and not meant for anybody
		return syscall.SIGTERM
	}
	return interrupt
}
