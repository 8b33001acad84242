package agent

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// A stateMachine decides what this node does. It has no clock, goroutine, I/O or logger. Its zero value is ready for begin.
type stateMachine struct {
	state     state
	why       string         // the machine came into this state
	replace   bool           // workers may survive their round
	join      bool           // is pending
	gang      bool           // workers may be left
	survivors bool           // the gang has been revoked: some may survive the round
	refusal   *death.Death   // of a survivor that has asked for no restart while the next gang was being started; nil: none has
	startErr  error          // of the next gang, which could not be started: the survivors are being stopped because of it; nil: there is none
	interrupt syscall.Signal // the first one; 0: none
	early     bool           // it has not come to this process as a signal yet: a worker has ended because of it, or it was timedOut or a command
	by        Command        // of the first interrupt, as in interrupted
	cause     error          // of the first interrupt, as in timedOut
	killed    bool           // a second interrupt has come

	// Of the present round:
	workers   int
	exits     []death.Death // in the order in which they came
	reason    reason        // the first reason to stop
	root      int           // index of the exit that is the reason, if it is one
	failing   *death.Death  // the failure of a worker that had not ended then, if this is the reason to stop; nil: it is not
	announced bool          // the reason has been announced
	over      error         // why the round is over; nil: it is not
	alone     bool          // the others are not waited for, or cannot be reached
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
func (m *stateMachine) begin() []action {
	m.join = true
	return []action{join{}}
}

// Step takes one event and returns the actions to take, in order. Only Step changes the state. It ignores events
// that do not matter in the present state.
func (m *stateMachine) Step(e event) []action {
	switch e := e.(type) {
	case started:
		return m.onStarted(e.workers)
	case startFailed:
		return m.onStartFailed(e.err)
	case workerExited:
		m.exits = append(m.exits, m.withFailure(e.Death))
		switch {
		case m.state == running && e.Failed() && e.Interrupt != 0: // which comes here too
			m.interrupt, m.early = e.Interrupt, true
			return m.depart(e.Interrupt)
		case m.state == running && e.Failed():
			return m.onFailure(e.Death)
		case m.state == joining && asksForNoRestart(e.Death):
			return m.onRefusal(e.Death)
		}
	case hung:
		return m.onHung(e.Death)
	case revocation:
		return m.onRevocation(e.Death)
	case diagnosed:
		return m.onDiagnosed()
	case gangGone:
		m.gang, m.survivors = false, false
		return m.onEnded()
	case revoked:
		if m.survivors {
			return m.onEnded()
		}
	case roundOver:
		return m.onRoundOver(e.err)
	case reported:
		return m.onReported(e.err)
	case barrierOver:
		m.alone = true
		return m.onNews()
	case interrupted:
		return m.onInterrupt(e)
	case timedOut:
		return m.onTimedOut(e.cause)
	case commanded:
		return m.onCommand(e.Command)
	case signalled:
		if m.state == running {
			return []action{forward(e)}
		}
	case suspended:
		if m.state != done {
			return []action{suspend{}}
		}
	}
	return nil
}

func (m *stateMachine) onStarted(workers int) []action {
	m.join, m.gang, m.survivors, m.workers, m.exits, m.reason = false, true, false, workers, nil, none
	m.announced, m.over, m.alone, m.failing = false, nil, false, nil
	switch {
	case m.interrupt == 0 && m.refusal != nil: // the cancelled join was faster
		m.workers, m.exits = workers+1, []death.Death{*m.refusal}
		return m.onFailure(*m.refusal)
	case m.interrupt == 0:
		m.become(running, "the workers are started")
		return nil
	case m.killed:
		m.reason = interruption
		return []action{kill{}}
	default: // the cancelled join was faster
		return append(m.depart(m.interrupt), m.answer(m.interrupt, m.by))
	}
}

func (m *stateMachine) onStartFailed(err error) []action {
	m.join = false
	if m.gang {
		m.startErr = err
		return m.endSurvivors()
	}
	closed, ok := errors.AsType[*rendezvous.ClosedError](err)
	switch {
	case m.interrupt != 0:
		return m.finish(&InterruptError{Signal: m.interrupt, By: m.by, Cause: m.cause})
	case ok: // without this node's last gang
		return m.finish(outcomeError(closed.Outcome, nil))
	case m.refusal != nil && m.reason == failure: // which came before
		return m.finish(m.workerError(m.first()))
	case m.refusal != nil:
		return m.finish(m.workerError(slices.IndexFunc(m.exits, asksForNoRestart)))
	default:
		return m.finish(&StartError{Err: err})
	}
}

// onFailure announces the failure only if other workers must be stopped first. Otherwise the summary follows at once.
func (m *stateMachine) onFailure(x death.Death) []action {
	m.root = len(m.exits) - 1
	todo := append(m.stop(failure, syscall.SIGTERM, describe(x)), report{&x})
	if others := m.workers - len(m.exits); others > 0 {
		m.announced = true
		todo = append(todo, announce{x, others})
	}
	return todo
}

// onRefusal ends the job on this node: a survivor asks for no restart.
func (m *stateMachine) onRefusal(x death.Death) []action {
	m.refusal = &x
	m.become(stopping, describe(x))
	return append([]action{cancelJoin{}}, m.stopSurvivors()...)
}

func (m *stateMachine) onRoundOver(err error) []action {
	m.over = err
	switch {
	case m.state == running && isHang(err):
		m.reason = membership
		m.become(diagnosing, fmt.Sprintf("the round is over: %v", err))
		return []action{diagnose{}}
	case m.state == running:
		return m.stop(membership, syscall.SIGTERM, fmt.Sprintf("the round is over: %v", err))
	case m.state == stopping && errors.Is(err, rendezvous.ErrClosed): // no other follows, and the others may take long to end
		return m.stopSurvivors()
	}
	return m.onNews()
}

func (m *stateMachine) onReported(err error) []action {
	if err == nil && m.state == waiting && m.reason == none {
		return []action{barrier{}}
	}
	m.alone = err != nil
	return m.onNews()
}

// onNews calls next if the machine is waiting.
func (m *stateMachine) onNews() []action {
	if m.state != waiting {
		return nil
	}
	return m.next()
}

// onEnded calls next when all workers have ended that were to end, unless a join or a diagnosis is pending.
func (m *stateMachine) onEnded() []action {
	switch {
	case m.join || m.state == diagnosing:
		return nil
	case m.startErr != nil:
		return m.onStartFailed(m.startErr)
	}
	return m.next()
}

// endSurvivors stops the survivors, because no other round follows.
func (m *stateMachine) endSurvivors() []action {
	m.become(stopping, "no other round follows")
	return m.stopSurvivors()
}

// stopSurvivors asks the survivors to end, unless it has done so.
func (m *stateMachine) stopSurvivors() []action {
	if !m.survivors {
		return nil
	}
	m.survivors = false
	return []action{stop{forWorkers(m.interrupt)}}
}

// stop ends the gang. If another round may follow, workers may survive this one.
func (m *stateMachine) stop(r reason, sig syscall.Signal, why string) []action {
	m.reason = r
	m.become(stopping, why)
	if m.replace && r != interruption && !errors.Is(m.over, rendezvous.ErrClosed) && m.refused() < 0 {
		m.survivors = true
		return []action{revoke{sig}}
	}
	return []action{stop{sig}}
}

func (m *stateMachine) become(s state, why string) { m.state, m.why = s, why }
