package agent

import (
	"errors"
	"slices"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// asksForNoRestart reports whether a worker exited with the code which says that it would fail again.
func asksForNoRestart(x death.Death) bool { return x.ExitCode == NoRestart }

// refused returns the index of the worker because of which no gang follows on this node: it has asked for no restart, or the job goes on
// without this node because of it. Negative: there is none.
func (m *stateMachine) refused() int {
	if i := slices.IndexFunc(m.exits, asksForNoRestart); i >= 0 {
		return i
	}
	over, ok := errors.AsType[*rendezvous.NewRoundError](m.over)
	if !ok || over.Failure == nil || !over.Failure.Final {
		return -1
	}
	return slices.IndexFunc(m.exits, func(x death.Death) bool { return x.Failed() && x.Rank == over.Failure.Rank })
}

// next decides what follows when nothing is left of a gang but survivors.
func (m *stateMachine) next() []action {
	closed, decided := errors.AsType[*rendezvous.ClosedError](m.over)
	last := m.interrupt != 0 || m.over != nil && m.refused() >= 0 || m.over == nil && m.alone // nothing follows this gang
	switch {
	case m.gang && (decided || last):
		return m.endSurvivors()
	case decided && m.reason != interruption:
		return m.finish(m.outcomeError(closed.Outcome))
	case last && m.reason == failure:
		return m.finish(m.workerError(m.first()))
	case m.interrupt != 0 && m.reason != none:
		return m.leave()
	case m.over != nil && m.refused() >= 0:
		return m.finish(m.workerError(m.refused()))
	case m.over != nil:
		return m.rejoin()
	case m.state == running:
		m.become(waiting, "every worker exited 0")
		return []action{report{}}
	case last:
		return m.finish(nil)
	default:
		m.become(waiting, "the gang is gone")
		return nil
	}
}

// leave ends the job on this node after an interrupt. The node leaves even if its workers all exited 0.
func (m *stateMachine) leave() []action {
	why := &InterruptError{Signal: m.interrupt, By: m.by, Cause: m.cause, Killed: countKilled(m.exits)}
	m.become(done, why.Error())
	if slices.ContainsFunc(m.exits, death.Death.Failed) {
		return []action{finish{why, why}}
	}
	return []action{finish{nil, why}}
}

// rejoin joins the next round. It also announces a failure that has not been announced, since no summary will name it.
func (m *stateMachine) rejoin() (todo []action) {
	m.become(joining, m.over.Error())
	if m.reason == failure && !m.announced {
		todo = append(todo, announce{Death: m.failures()[m.first()]})
	}
	m.join = true
	return append(todo, join{})
}

func (m *stateMachine) finish(err error) []action {
	why := "the job has succeeded"
	if err != nil {
		why = err.Error()
	}
	m.become(done, why)
	return []action{finish{err, err}}
}

// outcomeError returns the error of a job that was closed with outcome o. If o's failure is on this node, the error says more than
// was reported to the others.
func (m *stateMachine) outcomeError(o rendezvous.Outcome) error {
	if o.Failure == nil || m.reason != failure {
		return outcomeError(o, m.exits)
	}
	// If this is not the first failure here, the rendezvous has found that it caused the first one.
	i := slices.IndexFunc(m.exits, func(x death.Death) bool { return x.Rank == o.Failure.Rank && x.Failed() })
	if i < 0 {
		return outcomeError(o, m.exits)
	}
	return m.workerError(i)
}

// outcomeError returns the error for the end of a job that another node caused. exits are those of this node's gang.
func outcomeError(o rendezvous.Outcome, exits []death.Death) error {
	switch {
	case o.Success():
		return nil
	case o.Failure == nil:
		return &rendezvous.ClosedError{Outcome: o}
	default:
		e := &WorkerError{Root: o.Failure.Death, Code: o.Code, Elsewhere: o.Failure}
		e.add(exits)
		return e
	}
}

// workerError names the worker at index root of failures as the root cause.
func (m *stateMachine) workerError(root int) *WorkerError {
	all := m.failures()
	e := &WorkerError{Root: all[root], Code: all[root].Code()}
	e.add(slices.Concat(all[:root], all[root+1:]))
	return e
}
