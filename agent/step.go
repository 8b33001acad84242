package agent

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/gorun/gorun/launcher"
)

// A machine decides. It has no clock, goroutine, I/O or logger. Its zero value with the first block filled in is
// ready for begin.
type machine struct {
	maxRestarts int

	state     state
	why       string         // the machine came into this state
	gang      bool           // workers may be left; otherwise, unless done, a join is pending
	restarts  int            // used so far
	interrupt syscall.Signal // the first one; 0: none
	killed    bool           // a second one has come

	// Of the present gang:
	workers int
	exits   []launcher.Exit // in the order in which they came
	reason  reason          // the first reason to stop
	root    int             // index of the exit that is the reason, if it is a failure
}

// A reason is why a gang is stopped before all its workers have exited 0.
type reason int

const (
	none reason = iota
	failure
	membership
	interruption
)

// begin returns what to do first.
func (m *machine) begin() []action { return []action{join{}} }

// Step takes one event and returns what to do about it, in order. It is the only writer of the state. Events that
// cannot matter in the present state are ignored.
func (m *machine) Step(e event) []action {
	switch e := e.(type) {
	case started:
		return m.onStarted(e.workers)
	case startFailed:
		if m.interrupt != 0 {
			return m.finish(&InterruptError{Signal: m.interrupt})
		}
		return m.finish(&StartError{Err: e.err})
	case workerExited:
		m.exits = append(m.exits, e.Exit)
		if m.state == running && e.Failed() {
			return m.onFailure(e.Exit)
		}
	case gangGone:
		m.gang = false
		return m.next()
	case roundOver:
		if m.state == running {
			return m.stop(membership, syscall.SIGTERM, fmt.Sprintf("the round is over: %v", e.err))
		}
	case interrupted:
		return m.onInterrupt(e.sig)
	case signalled:
		if m.state == running {
			return []action{forward(e)}
		}
	}
	return nil
}

func (m *machine) onStarted(workers int) []action {
	m.gang, m.workers, m.exits, m.reason = true, workers, nil, none
	switch {
	case m.interrupt == 0:
		m.become(running, "the workers are started")
		return nil
	case m.killed:
		m.reason = interruption
		return []action{kill{}}
	default: // the cancelled join was faster
		return m.stop(interruption, m.interrupt, signalName(m.interrupt))
	}
}

// onFailure: nobody is told at once of what a summary will say in a moment.
func (m *machine) onFailure(x launcher.Exit) []action {
	m.root = len(m.exits) - 1
	todo := m.stop(failure, syscall.SIGTERM, describe(x))
	others := m.workers - len(m.exits)
	if others > 0 || x.Code != NoRestart && m.restarts < m.maxRestarts {
		todo = append(todo, announce{x, others})
	}
	return todo
}

// onInterrupt: the first interrupt asks, the second does not ask, a third finds everything done.
func (m *machine) onInterrupt(sig syscall.Signal) []action {
	if m.state == done || m.killed {
		return nil
	}
	if m.interrupt != 0 {
		m.killed = true
		if m.gang {
			return []action{kill{}}
		}
		return []action{cancelStart{}}
	}
	m.interrupt = sig
	switch m.state {
	case joining:
		m.become(stopping, signalName(sig))
		return []action{cancelJoin{}}
	case running:
		return m.stop(interruption, sig, signalName(sig))
	default: // already asked to stop; what is new is that nothing follows
		return nil
	}
}

// next decides what follows a gang of which nothing is left.
func (m *machine) next() []action {
	clean := !slices.ContainsFunc(m.exits, launcher.Exit.Failed)
	stoppedByUs := slices.ContainsFunc(m.exits, func(x launcher.Exit) bool { return x.Stopped })
	noRestart := slices.IndexFunc(m.exits, func(x launcher.Exit) bool { return x.Code == NoRestart })
	switch {
	case clean && (m.reason != membership || m.interrupt != 0 || !stoppedByUs):
		return m.finish(nil)
	case m.interrupt != 0 && m.reason != failure:
		return m.finish(&InterruptError{Signal: m.interrupt, Killed: countKilled(m.exits)})
	case m.reason == membership && noRestart < 0:
		return m.rejoin(m.why, false)
	case m.reason == membership:
		return m.finish(m.workerError(noRestart))
	case m.interrupt == 0 && noRestart < 0 && m.restarts < m.maxRestarts:
		m.restarts++
		return m.rejoin(fmt.Sprintf("%s; restart %d of %d", describe(m.exits[m.rootCause()]), m.restarts, m.maxRestarts), true)
	default:
		return m.finish(m.workerError(m.rootCause()))
	}
}

// rootCause returns the index of the exit to name, after a failure. That is the first failure, unless another worker
// crashed before the stop reached it: the connections of a dying process close before its end can be reported, and
// a peer that gives up for it may be reported first.
func (m *machine) rootCause() int {
	if crashed(m.exits[m.root]) {
		return m.root
	}
	crash := slices.IndexFunc(m.exits, func(x launcher.Exit) bool { return crashed(x) && !x.Stopped })
	return max(m.root, crash) // those before the root did not fail
}

// crashed: it died of what no process does to itself when a peer is gone.
func crashed(x launcher.Exit) bool {
	switch x.Signal {
	case syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE:
		return true
	default:
		return false
	}
}

func (m *machine) stop(r reason, sig syscall.Signal, why string) []action {
	m.reason = r
	m.become(stopping, why)
	return []action{stop{sig}}
}

func (m *machine) rejoin(why string, failed bool) []action {
	m.become(joining, why)
	return []action{join{restarts: m.restarts, again: why, failed: failed}}
}

func (m *machine) finish(err error) []action {
	why := "every worker exited 0"
	if err != nil {
		why = err.Error()
	}
	m.become(done, why)
	return []action{finish{err}}
}

func (m *machine) become(s state, why string) { m.state, m.why = s, why }
