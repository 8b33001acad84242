package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/agent/internal/workergroup"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

const (
	closeTimeout    = 5 * time.Second  // for the other nodes to learn that the job is over
	shutdownTimeout = 30 * time.Second // for what else ends then
)

// Run runs the job on this node to its end, and closes the rendezvous. The error is nil if the job succeeded or if,
// after an interrupt, all workers exited 0. Otherwise it is a *WorkerError, an *InterruptError, a *StartError, or a
// *rendezvous.ClosedError if no worker is the cause. The end of ctx ends the job as SIGTERM does. The cause of that end
// is the cause of the InterruptError, which the other nodes learn too.
func Run(ctx context.Context, config Config) error {
	startCtx, cancelStart := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelStart()
	joinCtx, cancelJoin := context.WithCancel(startCtx)
	defer cancelJoin()
	l := loop{
		Config:  config,
		begun:   time.Now(),
		joinCtx: joinCtx, cancelJoin: cancelJoin,
		startCtx: startCtx, cancelStart: cancelStart,
		machine: stateMachine{replace: config.SocketDir != ""},
		group: workergroup.New(workergroup.Config{
			Dir: config.SocketDir, Timeout: config.ReplaceTimeout, Warn: config.Spec.Warn,
		}),
		stacks:    make(map[string]bool),
		joined:    make(chan joined, 1),
		formed:    make(chan formed),
		starting:  make(chan struct{}, 1),
		allowed:   make(chan allowed),
		caller:    ctx,
		cancelled: ctx.Done(),
	}
	end := l.run()
	l.complete(end.err)
	l.watchNobody()
	l.finishGang()
	cancelStart()
	l.calls.Wait()
	if end.err == nil {
		l.removeStacks()
	}

	if err := closeRendezvous(ctx, config.Rendezvous, end.why); err != nil {
		config.Logger.Warn("cannot close the rendezvous", "error", err)
	}
	return end.err
}

// closeRendezvous leaves the job. It does not wait forever: the files of an etcd that this node hosts may be in a
// file system that does not answer.
func closeRendezvous(ctx context.Context, r rendezvous.Rendezvous, why error) error {
	err, inTime := within(shutdownTimeout, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		return r.Close(ctx, why)
	})
	if !inTime {
		return fmt.Errorf("it did not end within %s, and gorun does not wait for it", shutdownTimeout)
	}
	return err
}

// A loop owns the machine and everything that it acts on. A nil channel disables its case of the select. The loop waits for nothing but
// events, since an interrupt is one: what may have to wait (a rendezvous, also one of its locks, or a file system) belongs in a goroutine,
// which sends what it learns as an event, or answers a command.
type loop struct {
	Config
	machine     stateMachine
	joinCtx     context.Context // for the rendezvous
	cancelJoin  context.CancelFunc
	startCtx    context.Context // for the launcher, and for reports; when it ends so does joinCtx
	cancelStart context.CancelFunc
	joined      chan joined   // gets the outcome of the pending join, if there is one
	formed      chan formed   // gets the round in which that is about to start workers
	starting    chan struct{} // is full from when that starts workers until the loop gets them, and while this process is suspended
	later       []event       // for when it is empty
	group       *workergroup.Group
	pending     []workergroup.Event // from the group
	startEnds   <-chan time.Time    // after an interrupt, the start of workers that is under way has had the time that they have to end
	abandon     <-chan time.Time    // the pending join has had its time to end
	caller      context.Context     // of Run
	cancelled   <-chan struct{}     // is closed when caller ends; nil: the loop knows that

	begun   time.Time         // the job
	round   *rendezvous.Round // the last one with workers in it; nil: none so far
	started time.Time         // its workers
	over    <-chan struct{}   // the end of the round
	gang    Gang
	exits   <-chan death.Death // nil: nothing is left of the gang
	ended   chan death.Death   // the same exits, one for each worker, for the report of a failure
	monitor *hang.Monitor      // of the gang's progress; nil: nobody looks at that
	watched []hang.Worker      // by that
	hangs   <-chan hang.Hang
	tied    []int            // the ranks of which any may be the one that hangs; nil: it is known
	warned  sync.Once        // of workers that report no progress
	found   <-chan diagnosis // gets the outcome of the pending diagnosis
	diagnosis
	backoff backoff // that the present workers were started with

	calls       sync.WaitGroup   // goroutines that report, leave, diagnose or collect
	allowed     chan allowed     // gets a command to leave, once the rendezvous has agreed to it
	reported    <-chan error     // gets the outcome of the pending report
	reporting   <-chan struct{}  // closed when the report is about to be sent
	barrier     <-chan time.Time // the others have had their time
	barrierEnds time.Time

	barrierLasts <-chan time.Time // this node waits for long enough to say so
	stopLasts    <-chan time.Time // the gang has been stopping for long enough to say so

	history history
	stacks  map[string]bool // directories in which there are stacks, and whether the log names them
}

func (l *loop) run() *finish {
	todo := l.machine.begin()
	l.history.since = l.begun
	l.emit(status.Entry{Time: l.begun, Event: status.KindJobStarted, Program: l.Program, Gorun: l.Status.Gorun})
	for {
		if end := l.perform(todo); end != nil {
			return end
		}
		l.publish()
		was := l.machine.state
		e := l.next()
		l.record(e)
		todo = l.machine.Step(e)
		if is := l.machine.state; is != was {
			l.Logger.Debug(was.String()+" → "+is.String(), "why", l.machine.why)
			l.history.since = time.Now()
		}
	}
}

// next waits for the next event. What is meant for workers that are just being started waits until the machine knows of them.
func (l *loop) next() event {
	for {
		if len(l.starting) == 0 && len(l.later) > 0 {
			e := l.later[0]
			l.later = l.later[1:]
			return e
		}
		switch e := l.await().(type) {
		case nil:
		case signalled, suspended:
			if len(l.starting) == 0 {
				return e
			}
			l.later = append(l.later, e)
		default:
			return e
		}
	}
}

// await waits for the next event as it comes; nil: what has come is none.
func (l *loop) await() event {
	if e := l.ofGroup(); e != nil {
		return e
	}
	var ended <-chan int // is ready if workers have ended that may be replaced
	if l.gang != nil {
		ended = l.gang.Ended()
	}
	select {
	case j := <-l.joined:
		l.startEnds, l.abandon = nil, nil
		return l.enter(j)
	case <-l.startEnds:
		l.endStart()
	case <-l.abandon:
		return l.abandonJoin()
	case <-l.over:
		l.over = nil
		return roundOver{l.round.Err()}
	case err := <-l.reported:
		return l.onReported(err)
	case <-l.barrier:
		l.Logger.Warn("leaving before the other nodes' workers have ended", "waited", l.ExitBarrier)
		return barrierOver{}
	case <-l.barrierLasts:
		l.barrierLasts = nil
		l.Logger.Info("every worker of this node exited 0; waiting for the workers of the other nodes", "at_most", l.ExitBarrier)
	case <-l.stopLasts:
		l.stopLasts = nil
		l.sayStopping()
	case x, more := <-l.exits:
		l.onExit(x, more)
	case local := <-ended:
		l.onEnded(local)
	case m := <-l.group.Messages():
		l.group.Handle(m, time.Now())
	case <-timer(l.group.Deadline()):
		l.group.Check(time.Now())
	case f := <-l.formed:
		l.begin(f)
	case h := <-l.hangs:
		if l.machine.state == running {
			l.tied = h.Tied
		}
		return hung{l.deathOf(h)}
	case found := <-l.found:
		l.found, l.diagnosis = nil, found
		if l.machine.failing == nil {
			l.logDiagnosis()
		}
		return diagnosed{}
	case s := <-l.Interrupts:
		return interrupted{sig: number(s)}
	case s := <-l.Signals:
		return signalled{number(s)}
	case <-l.Suspends:
		return suspended{}
	case c := <-l.Commands:
		return l.onCommand(c)
	case a := <-l.allowed:
		if a.round != l.round { // it has changed in the meantime
			return l.onCommand(a.Command)
		}
		return commanded{a.Command}
	case <-l.cancelled:
		l.cancelled = nil
		return timedOut{causeOf(l.caller)}
	}
	return nil
}

// causeOf returns the cause of the end of a context; nil: the context was given no cause.
func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return cause
	}
	return nil
}

// onReported returns the event for the outcome of a report. If the round is over by now, that is the event.
func (l *loop) onReported(err error) event {
	if l.over != nil && l.round.Err() != nil {
		l.over = nil
		return roundOver{l.round.Err()}
	}
	if err != nil {
		l.Logger.Warn("cannot report to the rendezvous how the workers ended", "error", err)
	}
	return reported{err}
}

// sayStopping logs that workers have not ended yet, unless an interrupt has been answered, which says so, or they are being killed.
func (l *loop) sayStopping() {
	left := l.machine.workers - len(l.machine.exits)
	if l.machine.interrupt == 0 && left > 0 && l.Spec.Grace > stopNotice {
		l.Logger.Info(plural(left, "worker has", "workers have")+" not ended yet", "shutdown_timeout", l.Spec.Grace)
	}
}

// number converts what os/signal delivers on every system that has signals.
func number(s os.Signal) syscall.Signal { return s.(syscall.Signal) }
