package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/rendezvous"
)

// A Command is what somebody asks of the job while it runs.
type Command struct {
	Kind   CommandKind
	Nodes  [2]int        // of CommandScale: the least and the most
	Round  int           // of CommandRestart: the round that is to end; 0: the present one
	Force  bool          // of CommandDrain: the node leaves even if the others cannot go on without it
	Answer chan<- Answer // gets one, and has room for it
}

// A CommandKind is what a Command asks for.
type CommandKind string

// The kinds of commands.
const (
	CommandStop    CommandKind = "stop"    // end the job on this node, as SIGTERM does
	CommandKill    CommandKind = "kill"    // end it now, as a second signal does
	CommandDrain   CommandKind = "drain"   // end it on this node, if the others can go on without it
	CommandRestart CommandKind = "restart" // start all workers of the job again, in a new round. This is no failure
	CommandScale   CommandKind = "scale"   // change how many nodes a round may have
	CommandStacks  CommandKind = "stacks"  // write what the workers are doing to files
)

// spelling is how people give the command; empty: it is none.
func (c Command) spelling() string {
	switch {
	case c.Kind == "":
		return ""
	case c.Kind == CommandKill:
		return "gorun stop --kill"
	case c.Force:
		return "gorun " + string(c.Kind) + " --force"
	}
	return "gorun " + string(c.Kind)
}

// stops reports whether the command ends the job on all its nodes.
func (c Command) stops() bool { return c.Kind == CommandStop || c.Kind == CommandKill }

// An Answer says what has become of a Command.
type Answer struct {
	Err    error          // why it is refused; nil: it is carried out
	Stacks []WorkerStacks // of CommandStacks: by local rank
	Files  string         // of CommandStacks: a pattern of the files that say more; empty: there are none
	Hint   string         // of CommandStacks: how to see stacks that are missing; empty: none is, or there is no way
}

// WorkerStacks is what a worker was doing.
type WorkerStacks struct {
	Rank, LocalRank, Pid int
	Doing                string // as the end of a sentence about it; empty: not known
}

var errEnding = errors.New("the job is ending on this node")

// onCommand returns what a command asks for.
func (m *stateMachine) onCommand(c Command) []action {
	refuse := func(err error) []action { return []action{reply{c, err}} }
	by := Command{Kind: c.Kind, Force: c.Force}
	switch c.Kind {
	case CommandStop, CommandDrain:
		if c.Kind == CommandStop && m.state != done && m.interrupt != 0 {
			return []action{reply{to: c}} // it is stopping already
		}
		if m.state == done || m.interrupt != 0 {
			return refuse(errEnding)
		}
		m.early = true // whoever started gorun may send a SIGTERM too: after its preStop hook, or once another node has stopped
		return append([]action{reply{to: c}}, m.onInterrupt(interrupted{syscall.SIGTERM, by})...)
	case CommandKill:
		switch {
		case m.state == done:
			return refuse(errEnding)
		case m.killed:
			return []action{reply{to: c}}
		}
		todo := []action{reply{to: c}}
		if m.interrupt == 0 {
			todo = append(todo, m.onInterrupt(interrupted{syscall.SIGTERM, by})...)
		}
		return append(todo, m.onInterrupt(interrupted{syscall.SIGTERM, by})...)
	case CommandRestart:
		if m.state != running {
			return refuse(fmt.Errorf("its workers do not run (%s), so there is nothing to restart", m.doing()))
		}
		return []action{restart{c}}
	case CommandScale:
		if m.state == done || m.interrupt != 0 {
			return refuse(errEnding)
		}
		return []action{scale{c}}
	case CommandStacks:
		if !m.gang {
			return refuse(fmt.Errorf("no worker runs (%s)", m.doing()))
		}
		return []action{collect{c}}
	default:
		return refuse(fmt.Errorf("no command %q", c.Kind))
	}
}

// doing is the state, and why the node is in it, for people.
func (m *stateMachine) doing() string {
	if m.why == "" { // before the first round
		return m.state.String()
	}
	return m.state.String() + ": " + m.why
}

// onCommand returns the event that a command is; nil: the rendezvous is asked first, and the event follows.
func (l *loop) onCommand(c Command) event {
	if c.Kind != CommandDrain || c.Force || l.machine.state == done || l.machine.interrupt != 0 {
		return commanded{c}
	}
	round := l.round
	go func() {
		if err := mayLeave(l.startCtx, l.Rendezvous, round); err != nil {
			c.Answer <- Answer{Err: err}
			return
		}
		select {
		case l.allowed <- allowed{c, round}:
		case <-l.startCtx.Done():
			c.Answer <- Answer{Err: errEnding}
		}
	}()
	return nil
}

// An allowed command is one to leave a round, to which the rendezvous has agreed.
type allowed struct {
	Command
	round *rendezvous.Round
}

// mayLeave asks the rendezvous whether this node may leave a round, and returns why not. round is nil before the first one: then this node is
// not one of those that are needed.
func mayLeave(ctx context.Context, r rendezvous.Rendezvous, round *rendezvous.Round) error {
	if round != nil {
		if least, _ := r.Limits(); round.Size <= least {
			return fmt.Errorf("the job has %s and needs at least %d: without this node it would end; --force ends it", plural(round.Size, "node", "nodes"), least)
		}
	}
	if r.HostsAlone() {
		return errors.New("it hosts the etcd over which the nodes meet: without this node the others could not begin another round; --force takes it out")
	}
	if round == nil {
		return nil
	}
	return r.Drain(ctx, round)
}

// restartTimeout is how long somebody who asks for a new round waits until that is recorded.
const restartTimeout = 10 * time.Second

// restart asks the rendezvous for a new round, in a separate goroutine. What has not been recorded in time is so later: a rendezvous forgets
// no report.
func (l *loop) restart(c Command) {
	round := l.round
	if c.Round != 0 && c.Round != round.ID {
		c.Answer <- Answer{Err: fmt.Errorf("round %d is over already", c.Round)}
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(l.startCtx, restartTimeout)
		defer cancel()
		err := l.Rendezvous.Restart(ctx, round, "gorun restart")
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("the etcd over which the nodes meet has not answered within %v: the workers start again when it does", restartTimeout)
		}
		c.Answer <- Answer{Err: err}
	}()
}

// scale changes how many nodes a round may have, in a separate goroutine.
func (l *loop) scale(c Command) {
	least, most := c.Nodes[0], c.Nodes[1]
	switch {
	case l.round == nil:
		c.Answer <- Answer{Err: errors.New("it has no round yet")}
		return
	case most > rendezvous.WorldLimit/l.Node.Nproc:
		c.Answer <- Answer{Err: fmt.Errorf("%d nodes with %d workers each: want at most %d workers", most, l.Node.Nproc, rendezvous.WorldLimit)}
		return
	}
	go func() { c.Answer <- Answer{Err: l.Rendezvous.Scale(l.startCtx, least, most)} }()
}

// collect finds out what the workers are doing, in a separate goroutine.
func (l *loop) collect(c Command) {
	dir := attemptDir(l.Config, l.round.Restarts)
	var workers []hang.Worker
	for _, w := range l.watched {
		if l.machine.indexOf(w.Rank) < 0 {
			workers = append(workers, w)
		}
	}
	if _, known := l.stacks[dir]; !known {
		l.stacks[dir] = false
	}
	l.calls.Go(func() {
		report, err := hang.Collect(l.startCtx, workers, dir)
		answer := Answer{Err: err, Hint: report.FirstHint()}
		for i, w := range workers {
			answer.Stacks = append(answer.Stacks, WorkerStacks{w.Rank, w.LocalRank, w.Pid, Printable(report.Doing[i])})
		}
		if dir != "" {
			answer.Files = filepath.Join(dir, "*", hang.StacksFile)
		}
		c.Answer <- answer
	})
}
