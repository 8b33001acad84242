package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// run wires the parts together and runs the job: command is the program and its arguments.
func run(ctx context.Context, o *options, command []string, stdout, stderr *os.File) (err error) {
	logger, err := newLogger(stderr)
	if err != nil {
		return err
	}
	if len(o.overridden) > 0 {
		logger.Warn("--standalone overrides " + strings.Join(o.overridden, ", "))
	}
	meeting, err := newRendezvous(o, logger)
	if err != nil {
		return err
	}
	interrupts, signals := notify(stopSignals), notify(passSignals)
	defer signal.Stop(interrupts)
	defer signal.Stop(signals)
	program, err := launcher.Resolve(command[0], command[1:])
	if err != nil {
		return err
	}
	var buildDir string // of a program that is Go source
	if program.Source != "" {
		if buildDir, err = os.MkdirTemp("", "gorun-build-*"); err != nil {
			return &launcher.BuildError{Target: program.Source, Reason: err.Error()}
		}
		defer func() {
			if err := os.RemoveAll(buildDir); err != nil {
				logger.Warn("removing the built program", "error", err)
			}
		}()
		if err := build(ctx, program, buildDir, stderr, interrupts); err != nil {
			return err
		}
	}
	logs, err := newLogs(o, logger)
	if err != nil {
		return err
	}
	return agent.Run(ctx, agent.Config{
		Program: command[0], RunID: o.runID, Node: o.node(), MaxRestarts: o.maxRestarts, Environ: environ(buildDir != ""),
		Spec: launcher.Spec{
			Argv: program.Argv, TempDir: buildDir, Grace: o.grace, Logs: logs,
			Stdout: stdout, Stderr: stderr, Color: wantsColor(stdout) && wantsColor(stderr),
			Warn: func(msg string) { logger.Warn(msg) },
		},
		Rendezvous: meeting,
		Start:      start,
		Interrupts: interrupts,
		Signals:    signals,
		Logger:     logger,
	})
}

// environ is what the workers inherit. A Go program has no OpenMP threads, so nobody needs to be told of their number.
func environ(isGo bool) []string {
	env := os.Environ()
	if _, set := os.LookupEnv("OMP_NUM_THREADS"); isGo && !set {
		env = append(env, "OMP_NUM_THREADS=1")
	}
	return env
}

func newRendezvous(o *options, logger hclog.Logger) (rendezvous.Rendezvous, error) {
	if o.nnodes == 1 {
		return rendezvous.NewLocal(rendezvous.LocalConfig{
			Master: o.master, Reserve: reserve,
			Host: func(token string) (string, io.Closer, error) { return hostStore(token, logger) },
		}), nil
	}
	static, err := rendezvous.NewStatic(rendezvous.StaticConfig{
		Nodes: o.nnodes, NodeRank: o.nodeRank, Master: o.master, Token: o.token, Reserve: reserve,
	})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return static, nil
}

// hostStore serves the store in which the workers of one round meet, so that it is there before they are, and can
// still be asked who is missing when that is rank 0.
func hostStore(token string, logger hclog.Logger) (string, io.Closer, error) {
	log := slog.New(slog.NewTextHandler(logger.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Info}), nil))
	server, err := comm.ListenStore("127.0.0.1:0", []byte(token), log)
	if err != nil {
		return "", nil, err
	}
	return server.Addr(), server, nil
}

// reserve and start turn the launcher's types into the interfaces of those who use them.
func reserve(host string, port int) (rendezvous.Port, error) {
	p, err := launcher.ReservePort(host, port)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func start(ctx context.Context, spec launcher.Spec) (agent.Gang, error) {
	gang, err := launcher.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return gang, nil
}

func (o *options) node() rendezvous.Node {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	id := fmt.Sprintf("%s/%d", host, os.Getpid())
	if o.localAddr != "" {
		host = o.localAddr
	}
	return rendezvous.Node{ID: id, Host: host, NodeRank: o.nodeRank, Nproc: o.nproc, Role: o.role}
}

// newLogs makes the directory of this job, if one was asked for or is needed.
func newLogs(o *options, logger hclog.Logger) (launcher.LogSpec, error) {
	spec := launcher.LogSpec{Redirect: o.redirects, Tee: o.tee}
	wanted := o.logDir != "" || isUsed(o.redirects) || isUsed(o.tee)
	if !wanted || o.logDir == os.DevNull {
		return spec, nil
	}
	dir, err := launcher.RunDir(o.logDir, o.runID)
	if err != nil {
		return spec, usagef("%w", err)
	}
	if o.logDir == "" {
		logger.Warn("log files are in " + dir + "; --log-dir chooses another place")
	}
	spec.Dir = dir
	return spec, nil
}

func isUsed(m launcher.StdMap) bool {
	if m.Default != launcher.None {
		return true
	}
	for _, std := range m.Ranks {
		if std != launcher.None {
			return true
		}
	}
	return false
}

var (
	stopSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	passSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}
)

// notify delivers the signals on a list. One that is ignored stays so: that is how nohup, and a shell for its
// background jobs, ask for it.
func notify(list []os.Signal) chan os.Signal {
	c := make(chan os.Signal, 16)
	if list = unignored(list); len(list) > 0 {
		signal.Notify(c, list...)
	}
	return c
}

func unignored(list []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(list), signal.Ignored)
}

// build builds the program into dir. An interrupt ends it.
func build(ctx context.Context, program *launcher.Program, dir string, output io.Writer, interrupts <-chan os.Signal) error {
	if list := unignored(stopSignals); len(list) > 0 {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, list...)
		defer stop()
	}
	err := program.Build(ctx, dir, output)
	if err != nil && ctx.Err() != nil {
		return &agent.InterruptError{Signal: (<-interrupts).(syscall.Signal)}
	}
	return err
}
