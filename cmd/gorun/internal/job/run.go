package job

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/cmd/gorun/internal/health"
	"github.com/gorun/gorun/cmd/gorun/internal/scratch"
	"github.com/gorun/gorun/cmd/gorun/internal/systemd"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/launcher/guard"
	"github.com/gorun/gorun/launcher/spool"
	"github.com/gorun/gorun/rendezvous"
)

// A Session is what the process has that runs a job.
type Session struct {
	Stdout, Stderr *os.File
	Spool          *spool.Spool // writes to them
	Logger, Debug  *slog.Logger // the latter logs everything at the level debug
	Interrupts     *Interrupts
	Forwarded      <-chan os.Signal // go to the workers
	Guard          *guard.Guard     // started ahead; Run closes it
	Etcd           Etcd
	ExitCode       func(error) int

	// Published gets each snapshot of the node, and Scaled how many nodes the job needs, if that has changed. nil: nobody asks.
	Published func(*status.Node)
	Scaled    func(need int)
}

// Run runs this node's part of a job.
func Run(ctx context.Context, p *Plan, s *Session) error {
	ctx, done := withTimeout(ctx, p.Timeout, p.StopSignals, s.Logger)
	defer done()
	return orTimeout(ctx, p.run(ctx, s))
}

// run wires the parts together.
func (p *Plan) run(ctx context.Context, s *Session) (err error) {
	defer s.Guard.Close()
	logger, interrupts, config := s.Logger, s.Interrupts.Passed, p.Agent
	temp, err := scratch.New(config.RunID, logger)
	if err != nil {
		return err
	}
	defer func() { temp.CloseAfter(err, logger) }()
	s.Guard.Keep(temp.Path)
	if err := p.build(ctx, temp.Bin(), s.Stderr, interrupts); err != nil {
		return err
	}
	defer guard.ReapAsInit()() // the build, the only child so far, has ended

	spec := &config.Spec
	spec.Argv, spec.Guard, spec.TempDir = p.Program.Argv, s.Guard, temp.Path
	spec.Stdout, spec.Stderr, spec.Spool = s.Stdout, s.Stderr, s.Spool
	spec.Recent = launcher.NewRecent(config.Node.Nproc)
	config.Logger, spec.Warn = logger, func(msg string) { logger.Warn(msg) }
	config.ErrorDir, config.ProgressDir = temp.Path, temp.Progress()
	spec.Logs, err = interruptible(interrupts, func() (launcher.LogSpec, error) { return p.logs(logger) })
	if err != nil {
		return err
	}
	token, err := p.token()
	if err != nil {
		return err
	}
	if spec.Preload != nil { // it imports while the nodes meet
		spec.Preload.Env = agent.Inherited(config)
		if err := spec.Preload.Start(s.Guard, spec.Argv, spec.Warn); err != nil {
			return err
		}
	}
	server := p.control(spec.Recent, logger)
	defer server.Close()
	events, err := interruptible(interrupts, func() (*eventLog, error) { return p.eventLog(s) })
	if err != nil {
		return err
	}
	defer func() { events.end(orTimeout(ctx, err), s.ExitCode) }()
	notifier := systemd.Notify(logger)
	defer notifier.End()
	met := &etcdMemory{Etcd: s.Etcd}
	page, err := p.statusPage(server, spec.Recent, met, logger)
	if err != nil {
		return err
	}
	if page != nil {
		defer page.Close()
	}
	config.Emit = func(e status.Entry) {
		events.add(e)
		if page != nil {
			page.Emit(e)
		}
	}
	config.Publish = func(n *status.Node) {
		server.Publish(n)
		if s.Published != nil {
			s.Published(n)
		}
		notifier.Publish(n)
		if page != nil {
			page.Publish(n)
		}
	}
	config.Commands = server.Commands()
	if config.Rendezvous, err = p.rendezvous(met, token, temp.Path, server, s); err != nil {
		return err
	}
	config.Interrupts, config.Signals = interrupts, s.Forwarded
	config.InterruptGrace = func() (time.Duration, string) {
		return s.Interrupts.grace(spec.Grace, p.Given["shutdown-timeout"])
	}
	config.Suspends, config.Suspend = Notify(suspends(p.StopSignals)), suspend
	config.Start = start
	if spec.Apart {
		spec.Console = launcher.NewConsole(spec) // which a health check shares
		config.SocketDir, config.ReplaceTimeout = temp.Path, p.ReplaceTimeout
	}
	if p.HealthCheck != "" {
		own := launcher.Spec{Stdout: s.Stderr, Stderr: s.Stderr, Spool: s.Spool, Console: spec.Console, Raw: spec.Raw, Warn: spec.Warn}
		config.Health = func(ctx context.Context) error { return health.Check(ctx, p.HealthCheck, own, os.Environ()) }
	}
	return agent.Run(ctx, config)
}

// start converts the launcher's type to the interface of package agent.
func start(ctx context.Context, spec launcher.Spec) (agent.Gang, error) {
	gang, err := launcher.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return gang, nil
}

// build builds the program if it is Go source. An interrupt ends the build.
func (p *Plan) build(ctx context.Context, dir string, output io.Writer, interrupts <-chan os.Signal) error {
	if list := Unignored(p.StopSignals); len(list) > 0 {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, list...)
		defer stop()
	}
	err := p.Program.Build(ctx, dir, output)
	over, ok := errors.AsType[*TimeoutError](context.Cause(ctx))
	switch {
	case ok:
		return over
	case err != nil && ctx.Err() != nil:
		return &agent.InterruptError{Signal: (<-interrupts).(syscall.Signal)}
	}
	return err
}

// logs creates the log directory of this job, if the user asked for one or the job needs one.
func (p *Plan) logs(logger *slog.Logger) (launcher.LogSpec, error) {
	spec := p.Agent.Spec.Logs
	wanted := p.LogDir != "" || spec.Redirect.IsUsed() || spec.Tee.IsUsed() || len(spec.StdoutFilters)+len(spec.StderrFilters) > 0
	if !wanted || spec.Discard {
		return spec, nil
	}
	dir, err := launcher.RunDir(p.LogDir, p.Agent.RunID)
	if err != nil {
		return spec, &rendezvous.MisuseError{Err: err}
	}
	if p.LogDir == "" {
		logger.Info("log files are in " + dir + "; --log-dir chooses another place")
	}
	spec.Dir = dir
	return spec, nil
}

// control lets people see and steer the job. It listens while the job starts, which does not wait for it.
func (p *Plan) control(recent *launcher.Recent, logger *slog.Logger) *control.Server {
	server := control.New(control.Config{Recent: recent})
	go func() {
		if err := server.Listen(p.Agent.RunID); err != nil {
			logger.Warn("gorun status will not find this job: it has no socket", "error", err)
		}
	}()
	return server
}
