package agent

import (
	"errors"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// joined is the outcome of a join.
type joined struct {
	round *rendezvous.Round
	gang  Gang
	err   error
}

// perform does what the machine wants. It blocks on nothing.
func (l *loop) perform(todo []action) (finished bool, err error) {
	for _, a := range todo {
		switch a := a.(type) {
		case join:
			if a.again != "" {
				l.Logger.Warn("starting the workers again: " + a.again)
			}
			go func() { l.joined <- l.join(a.restarts) }()
		case cancelJoin:
			l.cancelJoin()
		case cancelStart:
			l.cancelStart()
		case stop:
			l.gang.Stop(a.sig)
		case kill:
			l.gang.Kill()
		case forward:
			l.gang.Signal(a.sig)
		case finish:
			return true, l.complete(a.err)
		}
	}
	return false, nil
}

// join gets a round and starts this node's workers in it. It runs beside the loop, of which it uses only what
// never changes.
func (l *loop) join(restarts int) joined {
	round, err := l.Rendezvous.Join(l.joinCtx, l.Node)
	if err != nil {
		return joined{err: err}
	}
	l.Logger.Debug("joined", "round", round.ID, "nodes", len(round.Nodes), "node", round.Self,
		"master_addr", round.Master.Addr, "master_port", round.Master.Port)
	spec := l.Spec
	if spec.Logs.Dir != "" {
		spec.Logs.Dir = launcher.AttemptDir(spec.Logs.Dir, restarts)
	}
	spec.Workers = workers(l.Config, round, restarts, spec.Logs.Dir)
	if err := l.joinCtx.Err(); err != nil {
		return joined{err: err}
	}
	gang, err := l.Start(l.startCtx, spec) // from here on workers may run, whom an interrupt lets stop by themselves
	round.Started()
	return joined{round: round, gang: gang, err: err}
}

// enter makes a join's outcome the present.
func (l *loop) enter(j joined) event {
	if j.err != nil {
		return startFailed{j.err}
	}
	l.round, l.over = j.round, j.round.Done()
	l.gang, l.exits = j.gang, j.gang.Exits()
	return started{}
}

// complete adds to a worker's failure what the machine does not know.
func (l *loop) complete(err error) error {
	if w, ok := errors.AsType[*WorkerError](err); ok {
		w.Program, w.Host = l.Program, l.Node.Host
	}
	return err
}

var _ Gang = (*launcher.Gang)(nil)
