package agent

import (
	"fmt"
	"time"

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
			l.tellAgain(a)
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
		case announce:
			l.announce(a)
		case finish:
			return true, l.complete(a.err)
		}
	}
	return false, nil
}

// tellAgain and announce say what torchrun says at these times, in its words.
func (l *loop) tellAgain(a join) {
	switch {
	case a.failed:
		l.Logger.Warn(fmt.Sprintf("[%s] Worker group FAILED. %d/%d attempts left; will restart worker group: %s",
			l.Node.Role, l.MaxRestarts-a.restarts+1, l.MaxRestarts, a.again))
	case a.again != "":
		l.Logger.Warn("starting the workers again: " + a.again)
	}
}

func (l *loop) announce(a announce) {
	text := fmt.Sprintf("failed (exitcode: %d) local_rank: %d (pid: %d) of binary: %s", exitCode(a.Exit), a.LocalRank, a.Pid, l.Program)
	if a.others > 0 {
		text += "; stopping the others"
	}
	l.Logger.Error(text, "rank", a.Rank, "host", l.Node.Host)
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
	spec := Plan(l.Config, round, restarts)
	if err := prepareErrorFiles(l.Config, restarts, len(spec.Workers)); err != nil {
		l.Logger.Warn("workers may not be able to say why they failed", "error", err)
	}
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
	l.gang, l.exits, l.started = j.gang, j.gang.Exits(), time.Now()
	return started{j.round.Nodes[j.round.Self].Nproc}
}

var _ Gang = (*launcher.Gang)(nil)
