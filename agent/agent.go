package agent

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// closeTimeout is how long telling the others that the job is over may take.
const closeTimeout = 5 * time.Second

// A Gang is what the agent needs of the workers that it started; *launcher.Gang is one.
type Gang interface {
	Exits() <-chan launcher.Exit
	Stop(syscall.Signal)
	Kill()
	Signal(syscall.Signal)
}

// Config is the job as this node sees it. Every field must be set, but for RunID and Environ.
type Config struct {
	Program     string // as the user named it, for messages
	RunID       string
	Node        rendezvous.Node // this node
	MaxRestarts int
	Environ     []string // that the workers inherit, "NAME=value"

	// Spec is what all attempts have in common. The agent fills in Workers and, if Spec.Logs.Dir names the
	// directory of the job (launcher.RunDir), makes it that of the attempt.
	Spec launcher.Spec

	Rendezvous rendezvous.Rendezvous
	Start      func(context.Context, launcher.Spec) (Gang, error) // launcher.Start
	// Interrupts end the job: the first one is what the workers get, with Spec.Grace to obey; the second kills.
	Interrupts <-chan os.Signal
	Signals    <-chan os.Signal // handed to the workers, for whom they are
	Logger     hclog.Logger
}

// Run runs the job on this node to its end, and leaves the rendezvous closed. The error is nil if all workers
// exited 0, else a *WorkerError, an *InterruptError or a *StartError. The end of ctx counts as SIGTERM.
func Run(ctx context.Context, config Config) error {
	startCtx, cancelStart := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelStart()
	joinCtx, cancelJoin := context.WithCancel(startCtx)
	defer cancelJoin()
	l := loop{
		Config:  config,
		machine: machine{maxRestarts: config.MaxRestarts},
		joinCtx: joinCtx, cancelJoin: cancelJoin,
		startCtx: startCtx, cancelStart: cancelStart,
		joined:    make(chan joined, 1),
		cancelled: ctx.Done(),
	}
	noticeThreads(config)
	err := l.run()

	closeCtx, cancelClose := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancelClose()
	if err := config.Rendezvous.Close(closeCtx, err); err != nil {
		config.Logger.Warn("closing the rendezvous", "error", err)
	}
	return err
}

// A loop owns the machine and all that it acts on. A nil channel switches its case off.
type loop struct {
	Config
	machine     machine
	joinCtx     context.Context // for the rendezvous
	cancelJoin  context.CancelFunc
	startCtx    context.Context // for the launcher; when it ends so does joinCtx
	cancelStart context.CancelFunc
	joined      chan joined     // gets the outcome of the pending join, if there is one
	cancelled   <-chan struct{} // the caller's context

	round *rendezvous.Round
	over  <-chan struct{} // the end of the round
	gang  Gang
	exits <-chan launcher.Exit
}

func (l *loop) run() error {
	todo := l.machine.begin()
	for {
		if finished, err := l.perform(todo); finished {
			return err
		}
		was := l.machine.state
		todo = l.machine.Step(l.next())
		if is := l.machine.state; is != was {
			l.Logger.Debug(was.String()+" → "+is.String(), "why", l.machine.why)
		}
	}
}

// next waits for the next event.
func (l *loop) next() event {
	select {
	case j := <-l.joined:
		return l.enter(j)
	case <-l.over:
		l.over = nil
		return roundOver{l.round.Err()}
	case x, more := <-l.exits:
		if more {
			return workerExited{x}
		}
		l.exits, l.over = nil, nil
		return gangGone{}
	case s := <-l.Interrupts:
		return interrupted{number(s)}
	case s := <-l.Signals:
		return signalled{number(s)}
	case <-l.cancelled:
		l.cancelled = nil
		return interrupted{syscall.SIGTERM}
	}
}

// number is what os/signal delivers, on every system that has signals.
func number(s os.Signal) syscall.Signal { return s.(syscall.Signal) }
