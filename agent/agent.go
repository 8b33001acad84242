package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/agent/health"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/rounds"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

const (
	closeTimeout    = 5 * time.Second  // for the other nodes to learn that the job is over
	shutdownTimeout = 30 * time.Second // for what else ends then
)

// A Gang is what the agent needs to control the workers that it started. *launcher.Gang implements it.
type Gang interface {
	Exits() <-chan launcher.Exit
	Stop(syscall.Signal)
	Interrupted(time.Duration)
	Kill()
	Signal(syscall.Signal)
	Suspend()
	Resume(passed time.Duration)
	Pids() []int
	IsBlocked() bool
	Fail(local int, why string, quit bool)
}

// A RevocableGang is a Gang of which some workers may survive its round. Config.Start returns one if Config.Replace is set. The survivors
// are then in the gang that the next Start returns.
type RevocableGang interface {
	Gang
	// Revocations delivers the failure of each worker that revokes the round, though it has not ended.
	Revocations() <-chan launcher.Exit
	// Revoke ends the round. It stops the workers that cannot survive it, as Stop does, and tells the survivors why, and which workers of
	// other nodes have died.
	Revoke(sig syscall.Signal, why string, died []rounds.Death)
	// Revoked is closed when nothing is left but survivors.
	Revoked() <-chan struct{}
	// Notify tells the survivors that more workers of other nodes have died.
	Notify(died []rounds.Death)
}

// Config describes the job on this node. Fields must be set unless their comments say otherwise.
type Config struct {
	Program       string          // as the user named it, for messages
	RunID         string          // optional
	Node          rendezvous.Node // this node
	WorkerTLS     bool            // workers encrypt what they send from machine to machine
	MaxRestarts   int             // that of Rendezvous, which has the budget; workers get it in a variable
	ReportTimeout time.Duration   // how long Rendezvous may take to take note of how workers ended
	ExitBarrier   time.Duration   // how long this node, when its workers have succeeded, waits for those of the others
	MaxBackoff    time.Duration   // the longest wait before a restart, for workers that fail again and again; 0: none
	HangTimeout   time.Duration   // after which a worker that reports progress, and makes none any more, has failed; 0: never
	ProgressDir   string          // of the files by which workers report it: nobody else may enter it; set if HangTimeout is

	// Spec is what all attempts have in common. The agent fills in Workers. If Spec.Logs.Dir names the directory
	// of the job (launcher.RunDir), the agent replaces it with the directory of the attempt.
	Spec launcher.Spec
	// Args is how many elements at the end of Spec.Argv are the user's arguments. In these, the agent replaces
	// ${local_rank} with the worker's local rank.
	Args int
	// LocalRankArg puts --local-rank=<local rank> before the user's arguments.
	LocalRankArg bool

	Environ []string // that the workers inherit, "NAME=value"
	// Devices, if not nil, are the values of DeviceVariable (CUDA_VISIBLE_DEVICES) for each local rank. Since each
	// worker then sees only one device, it gets LOCAL_RANK=0; its other variables stay the same.
	Devices        []string
	DeviceVariable string
	CPUs, MemNodes [][]int // by local rank: see launcher.WorkerSpec; nil: all
	MaxProcs       []int   // GOMAXPROCS by local rank; nil: nothing is said

	Prefix string       // template of what stands before a worker's lines: role_name, rank, local_rank
	Show   map[int]bool // by local rank: whose lines the console gets; nil: everybody's

	ErrorDir  string    // where attempts keep the workers' error files if Spec.Logs.Dir is empty; both empty: there are none
	ErrorFile string    // gets the root cause of a failure, as JSON; empty: none
	Backend   string    // name of Rendezvous, for Events; optional
	Events    io.Writer // gets torchelastic's events when the job has ended, as lines of JSON in one Write; nil: none

	Checks     []health.Check // that this node must pass before it joins a round; again after one of its workers has failed
	Cooldown   time.Duration  // how long a node that fails a check waits before it tries again; doubles each time, to 10 minutes at most
	Rendezvous rendezvous.Rendezvous
	Start      func(context.Context, launcher.Spec) (Gang, error) // launcher.Start, or workergroup.Group's
	Replace    bool                                               // workers that take part survive a round; Start returns a RevocableGang
	// Interrupts end the job: the workers get the first signal and have InterruptGrace to end; the second signal kills them. A SIGTERM after
	// the end of Run's context is still the first.
	Interrupts <-chan os.Signal
	// InterruptGrace returns how long the workers may take to end after an interrupt, and a note about that for people, which may be
	// empty. It is called when the first interrupt has come. Nil: Spec.Grace.
	InterruptGrace func() (grace time.Duration, note string)
	Signals        <-chan os.Signal // handed on to the workers
	// Suspends suspend the job on this node: first the workers, and then this process, by calling Suspend. Suspend
	// returns when somebody has continued the process, with the time that has passed. Both are optional.
	Suspends <-chan os.Signal
	Suspend  func() (passed time.Duration)
	// Commands are what else people ask of the job while it runs. Each gets an answer, unless the job has ended.
	Commands <-chan Command
	// Publish gets a snapshot of this node after each event. Nobody changes the snapshot. Publish must not wait. nil: nobody wants it.
	Publish func(*status.Node)
	Status  status.Node   // of snapshots: what does not change, and the other fields of Config do not say
	Lease   time.Duration // after which the other nodes give up one that is silent; 0: they do not
	Logger  *slog.Logger
}

// Run runs the job on this node to its end, and closes the rendezvous. The error is nil if the job succeeded or if,
// after an interrupt, all workers exited 0. Otherwise it is a *WorkerError, an *InterruptError, a *StartError, or a
// *rendezvous.ClosedError if no worker is the cause. The end of ctx ends the job as SIGTERM does.
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
		machine:   stateMachine{replace: config.Replace},
		stacks:    make(map[string]bool),
		joined:    make(chan joined, 1),
		drained:   make(chan drained),
		cancelled: ctx.Done(),
	}
	end := l.run()
	l.watchNobody()
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

// A loop owns the machine and everything that it acts on. A nil channel disables its case of the select.
type loop struct {
	Config
	machine     stateMachine
	joinCtx     context.Context // for the rendezvous
	cancelJoin  context.CancelFunc
	startCtx    context.Context // for the launcher, and for reports; when it ends so does joinCtx
	cancelStart context.CancelFunc
	joined      chan joined      // gets the outcome of the pending join, if there is one
	abandon     <-chan time.Time // the pending join has had its time to end
	cancelled   <-chan struct{}  // the caller's context

	begun   time.Time         // the job
	round   *rendezvous.Round // the last one with workers in it; nil: none so far
	started time.Time         // its workers
	over    <-chan struct{}   // the end of the round
	gang    Gang
	exits   <-chan launcher.Exit
	revokes <-chan launcher.Exit // gets the failures of workers that revoke the round; nil: they cannot
	revoked <-chan struct{}      // closed when only survivors are left of the gang; nil: it has not been revoked
	ended   chan launcher.Exit   // the same exits, one for each worker, for the report of a failure
	monitor *hang.Monitor        // of the gang's progress; nil: nobody looks at that
	watched []hang.Worker        // by that
	hangs   <-chan hang.Hang
	found   <-chan diagnosis // gets the outcome of the pending diagnosis
	diagnosis
	backoff backoff // that the present workers were started with

	calls       sync.WaitGroup   // goroutines that report, leave, diagnose or carry out commands
	drained     chan drained     // gets a command to leave that the rendezvous has agreed to
	reported    <-chan error     // gets the outcome of the pending report
	reporting   <-chan struct{}  // closed when the report is about to be sent
	barrier     <-chan time.Time // the others have had their time
	barrierEnds time.Time

	barrierLasts <-chan time.Time // this node waits for long enough to say so

	history history
	stacks  map[string]bool // directories in which there are stacks, and whether the log names them
}

func (l *loop) run() *finish {
	todo := l.machine.begin()
	l.history.since = l.begun
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

// next waits for the next event.
func (l *loop) next() event {
	select {
	case j := <-l.joined:
		l.abandon = nil
		return l.enter(j)
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
		return l.next()
	case x, more := <-l.exits:
		return l.onExit(x, more)
	case <-l.revoked:
		if len(l.exits) > 0 { // which came before
			x, more := <-l.exits
			return l.onExit(x, more)
		}
		l.revoked = nil
		return revoked{}
	case x := <-l.revokes:
		x.Revoked = Printable(cut(x.Revoked))
		return revocation{x}
	case h := <-l.hangs:
		return hung{exitOfHang(h)}
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
	case d := <-l.drained:
		if d.round != l.round { // it has changed in the meantime
			return l.onCommand(d.Command)
		}
		return commanded{d.Command}
	case <-l.cancelled:
		l.cancelled = nil
		return timedOut{}
	}
}

// abandonTimeout is how long a join may take to return after its context has ended. It may hang in a file system that does not
// answer.
const abandonTimeout = 2 * time.Second

// abandonJoin stops waiting for a join that does not return.
func (l *loop) abandonJoin() event {
	l.Logger.Warn("the start of the workers did not end in time, and gorun does not wait for it")
	go func() {
		if late := <-l.joined; late.gang != nil {
			late.gang.Kill()
			for range late.gang.Exits() {
			}
		}
	}()
	return startFailed{context.Cause(l.startCtx)}
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

func (l *loop) onExit(x launcher.Exit, more bool) event {
	if more {
		l.ended <- x
		if l.monitor != nil {
			l.monitor.Ended(x.LocalRank)
		}
		return workerExited{x}
	}
	l.exits = nil
	return gangGone{}
}

// number converts what os/signal delivers on every system that has signals.
func number(s os.Signal) syscall.Signal { return s.(syscall.Signal) }
