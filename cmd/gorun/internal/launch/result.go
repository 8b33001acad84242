package launch

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// The exit codes of what the launcher finds itself.
const (
	codeLost        = 1  // a host was lost
	codeCorrect     = 2  // the user has to correct something
	codeUnreachable = 75 // a host cannot be reached: the nodes did not meet
)

// A Result is how a launched job ended.
type Result struct {
	Code    int
	Text    string         // for people, one sentence; empty: nothing is to be said, or Summary or Signal says it
	Summary string         // of a failure of a worker: whole lines
	Signal  syscall.Signal // that the launcher got, and because of which not all workers exited 0; 0: none
	Killed  int            // workers that did not stop by themselves
}

// result returns how the job ended, once it is over.
func (m *stateMachine) result() Result {
	cause := m.cause()
	switch {
	case cause >= 0 && m.nodes[cause].endsJob():
		return m.own(cause)
	case m.failure != nil:
		return Result{Code: m.failure.Code, Text: m.failure.Error()}
	case m.interrupt != 0:
		return m.interruption(cause)
	case cause < 0 || m.enoughSucceeded():
		return Result{}
	default:
		return m.own(cause)
	}
}

// cause returns the host whose outcome says most about why the job failed: the first one with the cause that comes first in the list; -1: there
// is none. Hosts without which the job has gone on come last. Timeout comes before Worker: a node says it only if it knows of no worker that
// has failed before, and workers that fail after it may have lost the workers that it has stopped. After gorun stop, other hosts may end with
// Died or Other because of it, so these count only for hosts that ended before.
func (m *stateMachine) cause() int {
	for _, spared := range []bool{false, true} {
		for _, causes := range [][]frame.Cause{{frame.Timeout}, {frame.Worker}, {frame.Elsewhere}, {frame.Died, frame.Other}, {frame.Stopped, frame.Drained}} {
			for _, i := range m.order {
				n := &m.nodes[i]
				if n.spared == spared && slices.Contains(causes, n.outcome.Cause) {
					return i
				}
				if n.outcome.ByStop && slices.Contains(causes, frame.Other) {
					break // the hosts that follow have ended after gorun stop
				}
			}
		}
	}
	return -1
}

// endsJob reports whether a node has ended for a reason that ends the whole job. The loss of a host is no such reason.
func (n *node) endsJob() bool { return n.outcome.Failed() || n.outcome.Cause == frame.Timeout }

// own is the outcome of one host as that of the job. How a worker failed names its host; other lines do not.
func (m *stateMachine) own(i int) Result {
	o := m.nodes[i].outcome
	if o.Failed() {
		return Result{Code: o.Code, Summary: o.Text}
	}
	text := "host " + m.rules.Hosts[i].Name + ": " + o.Text
	if n := m.same(i); n > 0 {
		text += fmt.Sprintf(" (number of other hosts that say the same: %d)", n)
	}
	return Result{Code: o.Code, Text: text}
}

// same counts the other hosts that say the same as host i.
func (m *stateMachine) same(i int) (n int) {
	for j := range m.nodes {
		if o := m.nodes[j].outcome; j != i && o != nil && o.Text == m.nodes[i].outcome.Text {
			n++
		}
	}
	return n
}

// interruption is the result after a signal: success, if every worker has then exited 0.
func (m *stateMachine) interruption(cause int) Result {
	if cause < 0 && len(m.order) == len(m.nodes) {
		return Result{}
	}
	r := Result{Code: 128 + int(m.interrupt), Signal: m.interrupt}
	for _, i := range m.order {
		r.Killed += m.nodes[i].outcome.Killed
	}
	return r
}

// enoughSucceeded reports whether the job succeeded without the hosts that did not.
func (m *stateMachine) enoughSucceeded() bool { return m.succeeded() >= m.least }

// succeeded counts the hosts on which the job has succeeded.
func (m *stateMachine) succeeded() (n int) {
	for i := range m.nodes {
		if o := m.nodes[i].outcome; o != nil && o.Code == 0 {
			n++
		}
	}
	return n
}
