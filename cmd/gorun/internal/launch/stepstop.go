package launch

import (
	"syscall"
	"time"
)

// stop ends the job on all hosts: with a signal where it runs, and at once where it does not.
func (m *stateMachine) stop(sig syscall.Signal, now time.Time) (actions []action) {
	m.stopping = true
	for i := range m.nodes {
		switch n := &m.nodes[i]; n.phase {
		case connecting, ready:
			n.phase = ended
			actions = append(actions, drop{i})
		case running:
			actions = append(actions, signal{i, sig})
		case ended:
		}
	}
	m.stopAt = time.Time{}
	m.killAt = now.Add(m.rules.Grace + killMargin)
	return actions
}

func (m *stateMachine) signalAll(sig syscall.Signal) (actions []action) {
	for i := range m.nodes {
		if m.nodes[i].phase == running {
			actions = append(actions, signal{i, sig})
		}
	}
	return actions
}

// onInterrupt: the first signal lets the workers stop, a second one has them killed by their proxies, and a third one by the hosts.
func (m *stateMachine) onInterrupt(sig syscall.Signal, now time.Time) []action {
	m.signals++
	first := m.interrupt == 0
	if first {
		m.interrupt = sig
	}
	if sig == syscall.SIGPIPE { // nobody reads the output here; on the hosts, somebody does
		sig = syscall.SIGTERM
	}
	switch {
	case first:
		return m.stop(sig, now)
	case m.signals == 2:
		m.killAt = now.Add(killMargin)
		return m.signalAll(sig)
	default:
		return m.killAll(now)
	}
}

func (m *stateMachine) killAll(now time.Time) (actions []action) {
	for i := range m.nodes {
		if m.nodes[i].phase == running {
			actions = append(actions, kill{i})
		}
	}
	m.stopAt, m.killAt = time.Time{}, time.Time{}
	if m.dropAt.IsZero() {
		m.dropAt = now.Add(killTimeout)
	}
	return actions
}
