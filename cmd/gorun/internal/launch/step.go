package launch

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/network"
)

// Step takes one event and returns the actions to take, in order. Only Step changes the state.
func (m *stateMachine) Step(e event, now time.Time) []action {
	switch e := e.(type) {
	case said:
		return m.onSaid(e, now)
	case alive:
		m.nodes[e.host].lastSeen = now
	case copying:
		m.nodes[e.host].copying, m.nodes[e.host].lastSeen = e.now, now
	case scaled:
		return m.onScaled(e)
	case finished:
		return m.onFinished(e, now)
	case lost:
		return m.onLost(e.host, e.why, now)
	case interrupted:
		return m.onInterrupt(e.sig, now)
	case signalled:
		return m.signalAll(e.sig)
	case elapsed:
		return m.onElapsed(now)
	}
	return nil
}

func (m *stateMachine) onSaid(e said, now time.Time) []action {
	n := &m.nodes[e.host]
	if n.phase != connecting {
		return nil
	}
	n.phase, n.hello, n.lastSeen = ready, e.hello, now
	return m.begin(now)
}

// begin starts the job on the hosts that are ready, if it is known where they meet.
func (m *stateMachine) begin(now time.Time) (actions []action) {
	if m.stopping || m.rules.Meets && !m.chooseEndpoints() {
		return nil
	}
	for i := range m.nodes {
		if n := &m.nodes[i]; n.phase == ready {
			n.phase, n.lastSeen = running, now
			actions = append(actions, start{i})
		}
	}
	return actions
}

// chooseEndpoints chooses the first host. If the job can do without some of three or more hosts, it chooses the first three, any one of
// which may then fail. It reports whether their proxies are there.
func (m *stateMachine) chooseEndpoints() bool {
	if m.endpoints != nil {
		return true
	}
	var first []int
	for i := range m.nodes {
		if isAlive(m.nodes[i].phase) {
			first = append(first, i)
		}
	}
	n := min(1, len(first))
	if len(first) >= 3 && m.least < len(m.nodes) {
		n = 3
	}
	first = first[:n]
	isSilent := func(i int) bool { return m.nodes[i].phase == connecting }
	if n == 0 || slices.ContainsFunc(first, isSilent) {
		return false
	}
	isLocal := func(i int) bool { return !isElsewhere(m.nodes[i]) }
	if slices.ContainsFunc(first, isLocal) && m.count(func(p phase) bool { return p == connecting }) > 0 && !slices.ContainsFunc(m.nodes, isElsewhere) {
		return false // another host is needed to find out at which address it reaches that one
	}
	m.endpoints = first
	return true
}

// isElsewhere reports whether a node has an address at which other machines reach it.
func isElsewhere(n node) bool { return n.hello.Addr != "" && !network.IsLoopback(n.hello.Addr) }

// onScaled sets how many hosts the job needs. If it is to need more than are left, it needs all of these: no host comes back, and a round
// that has fewer nodes goes on. The nodes may have learned of it before one left with which there were too few, and go on then.
func (m *stateMachine) onScaled(e scaled) (actions []action) {
	if m.nodes[e.host].phase != running || m.stopping {
		return nil
	}
	left := m.useful()
	m.least = max(1, min(e.least, left))
	endsJob := func(i int) bool { return m.nodes[i].endsJob() }
	if e.least > left || slices.ContainsFunc(m.order, endsJob) {
		return nil
	}
	m.stopAt = time.Time{}
	for _, i := range m.missed {
		actions = append(actions, m.goOnWithout(i))
	}
	m.missed = nil
	return actions
}

func (m *stateMachine) onFinished(e finished, now time.Time) []action {
	n := &m.nodes[e.host]
	if n.phase != running {
		return nil
	}
	n.phase, n.outcome = ended, &e.outcome
	m.order = append(m.order, e.host)
	actions := []action{drop{e.host}}
	switch o := e.outcome; {
	case m.stopping:
		return actions
	case o.ByStop: // it ends the whole job, and a node that is frozen, or had not come yet, has not heard of it
		return append(actions, m.stop(syscall.SIGTERM, now)...)
	case o.Code == 0:
		return actions
	case m.enough() && (!m.rules.Shared || !n.endsJob()): // the failure of a worker, without restarts, ends a job that shares it on all hosts
		return append(actions, m.goOnWithout(e.host))
	case m.rules.Shared && m.canMeet() && (n.endsJob() || o.Cause == frame.Stopped || o.Cause == frame.Drained):
		if m.stopAt.IsZero() { // the others learn it by themselves, and say more about it
			m.stopAt = now.Add(m.rules.Grace + shareTimeout)
		}
		m.missed = append(m.missed, e.host)
		return actions
	default:
		return append(actions, m.stop(syscall.SIGTERM, now)...)
	}
}

// goOnWithout says that a host has left a job that goes on.
func (m *stateMachine) goOnWithout(i int) warn {
	n := &m.nodes[i]
	n.spared = m.canMeet() // else the others may end because of it
	how := fmt.Sprintf("with exit code %d", n.outcome.Code)
	if n.outcome.Cause == frame.Drained {
		how = "after gorun drain"
	}
	return warn{fmt.Sprintf("host %s has left the job %s%s", m.rules.Hosts[i].Name, how, m.outlook())}
}

// enough reports whether the job can do without the hosts that have ended. Those that have succeeded count.
func (m *stateMachine) enough() bool { return m.useful() >= m.least }

// outlook returns what becomes of the other hosts when one has left, as the end of a sentence. Empty: they have ended, or are ending because
// a worker has failed.
func (m *stateMachine) outlook() string {
	switch {
	case m.count(isAlive) == 0 || !m.stopAt.IsZero():
		return ""
	case !m.canMeet():
		return "; the others cannot meet again: the job's etcd is lost"
	}
	return "; going on with the others"
}

// useful counts the hosts that have not ended, or have succeeded.
func (m *stateMachine) useful() int { return m.count(isAlive) + m.succeeded() }

// canMeet reports whether the etcd that the nodes host still has a majority; it is true if they host none. A host on which gorun has not
// died has left the etcd to the others.
func (m *stateMachine) canMeet() bool {
	gone := 0
	for _, i := range m.endpoints {
		if n := &m.nodes[i]; n.phase == ended && (n.outcome == nil || n.outcome.Cause == frame.Died) {
			gone++
		}
	}
	return 2*gone <= len(m.endpoints)
}

func (m *stateMachine) onLost(i int, why *Failure, now time.Time) []action {
	n := &m.nodes[i]
	if n.phase == ended {
		return nil
	}
	hadJob := n.phase == running
	n.phase = ended
	actions := []action{drop{i}}
	switch {
	case m.stopping && hadJob:
		return append(actions, warn{why.Error()})
	case m.stopping:
		return actions
	case m.enough():
		actions = append(actions, warn{why.Error() + m.outlook()})
		return append(actions, m.begin(now)...)
	default:
		m.failure = why
		return append(actions, m.stop(syscall.SIGTERM, now)...)
	}
}

func (m *stateMachine) onElapsed(now time.Time) (actions []action) {
	isDue := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	for i := range m.nodes {
		n, name := &m.nodes[i], m.rules.Hosts[i].Name
		switch {
		case n.phase == connecting && isDue(n.lastSeen.Add(m.rules.Connect)):
			why := &Failure{name, "connecting",
				fmt.Sprintf("no answer within %v: check that it is up, and that ssh runs a command there without a question, or give it longer with --connect-timeout", m.rules.Connect), codeUnreachable}
			if n.copying {
				why = &Failure{name, "copying gorun", fmt.Sprintf("no progress within %v: check the network, or give it longer with --connect-timeout", m.rules.Connect), codeUnreachable}
			}
			actions = append(actions, m.onLost(i, why, now)...)
		case n.phase == running && isDue(n.lastSeen.Add(m.rules.Silence)):
			actions = append(actions, m.onLost(i, &Failure{name, "running the job",
				fmt.Sprintf("the host is lost: no sign of life for %v", m.rules.Silence), codeLost}, now)...)
		}
	}
	if isDue(m.stopAt) {
		actions = append(actions, m.stop(syscall.SIGTERM, now)...)
	}
	if isDue(m.killAt) {
		for i := range m.nodes {
			if m.nodes[i].phase == running {
				actions = append(actions, warn{fmt.Sprintf("host %s: the job has not ended there in time: gorun kills it", m.rules.Hosts[i].Name)})
			}
		}
		actions = append(actions, m.killAll(now)...)
	}
	if isDue(m.dropAt) {
		m.dropAt = time.Time{}
		for i := range m.nodes {
			if m.nodes[i].phase != running {
				continue
			}
			m.nodes[i].phase = ended
			actions = append(actions, drop{i}, warn{fmt.Sprintf("host %s: does not answer: look there for what is left of the job", m.rules.Hosts[i].Name)})
		}
	}
	return actions
}
