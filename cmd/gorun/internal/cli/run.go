package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/launcher"
)

// run wires the parts together and runs the job: command is the program and its arguments.
func run(ctx context.Context, o *options, command []string, stdout, stderr *os.File) (err error) {
	logger, err := newLogger(stderr)
	if err != nil {
		return err
	}
	var guard *launcher.Guard
	if !o.dryRun {
		if guard, err = launcher.StartGuard(o.nproc); err != nil { // it starts while the rest is settled
			return err
		}
		defer guard.Close()
	}
	if len(o.overridden) > 0 {
		logger.Warn("--standalone overrides " + strings.Join(o.overridden, ", "))
	}
	for _, w := range strays(os.Environ()) {
		logger.Warn(w)
	}
	program, err := o.find(command)
	if err != nil {
		return err
	}
	config, note, err := o.config(program, command)
	if err != nil {
		return err
	}
	if o.dryRun {
		return dryRun(ctx, o, config, program, stdout)
	}
	if note != "" {
		logger.Warn(note)
	}
	temp, err := newScratch(o.runID)
	if err != nil {
		return fmt.Errorf("no directory for temporary files ($TMPDIR chooses another): %w", err)
	}
	defer func() {
		_, failed := errors.AsType[*agent.WorkerError](err)
		if closeErr := temp.close(failed); closeErr != nil {
			logger.Warn("removing temporary files", "error", closeErr)
		}
	}()
	interrupts, signals := notify(o.stopSignals), notify(o.passed())
	defer signal.Stop(interrupts)
	defer signal.Stop(signals)
	if err := o.build(ctx, program, temp.dir, stderr, interrupts); err != nil {
		return err
	}
	defer launcher.ReapAsInit()() // the build, the only child so far, has ended
	if config.Spec.Logs, err = o.logs(logger); err != nil {
		return err
	}
	config.Spec.Argv, config.Spec.Guard = program.Argv, guard
	config.Spec.TempDir, config.ErrorDir = temp.dir, temp.dir
	config.Spec.TimerFile = timerFile(filepath.Join(temp.dir, "timer"))
	config.Spec.Stdout, config.Spec.Stderr = stdout, stderr
	config.Spec.Color, config.Spec.Live = wantsColor(stdout) && wantsColor(stderr), isTerminal(stdout) && isTerminal(stderr)
	config.Spec.Warn = func(msg string) { logger.Warn(msg) }
	if o.events == "console" {
		config.Events = stderr
	}
	if config.Rendezvous, err = newRendezvous(o, reserve, hostStore(logger)); err != nil {
		return err
	}
	config.Start, config.Logger = start, logger
	config.Interrupts, config.Signals = interrupts, signals
	return agent.Run(ctx, config)
}

// find finds the program. It builds nothing.
func (o *options) find(command []string) (*launcher.Program, error) {
	target, args := command[0], command[1:]
	switch {
	case o.runPath:
		return launcher.ResolveRunPath(target, args)
	case o.module:
		return launcher.ResolveModule(target, args)
	case o.noPython:
		return launcher.ResolveExecutable(target, args)
	default:
		return launcher.Resolve(target, args)
	}
}

// config is the job as far as a dry run knows it: who the workers are, and what they get. note is what the user should
// know of it.
func (o *options) config(program *launcher.Program, command []string) (c agent.Config, note string, err error) {
	procs, err := o.processors()
	if err != nil {
		return c, "", err
	}
	environ, note := o.environ(os.Environ(), procs.threads, program.Source != "")
	c = agent.Config{
		Program: command[0], RunID: o.runID, Node: o.node(), Backend: o.backend, MaxRestarts: o.maxRestarts, Environ: environ,
		Prefix: &o.prefix, Args: len(command) - 1, LocalRankArg: !o.useEnv,
		Devices: procs.devices.Names, DeviceVariable: procs.devices.Variable,
		ErrorFile: os.Getenv("TORCHELASTIC_ERROR_FILE"),
		Spec:      launcher.Spec{Argv: program.Argv, Grace: o.grace, Raw: !isUTF8(o.host.lookup), TimerFile: timerFile(later)},
	}
	if o.show != nil {
		c.Show = func(localRank int) bool { return o.show[localRank] }
	}
	for _, b := range procs.bindings {
		c.CPUs, c.MemNodes = append(c.CPUs, b.CPUs), append(c.MemNodes, b.Nodes)
	}
	return c, note, nil
}

// timerFile is where workers may set timers, by torchrun's variables: fresh, if they name no file or that of a launcher
// whose worker this gorun is; empty: nowhere.
func timerFile(fresh string) string {
	name, isWorker := os.Getenv("TORCHELASTIC_TIMER_FILE"), os.Getenv("TORCHELASTIC_RUN_ID") != ""
	switch {
	case os.Getenv("TORCHELASTIC_ENABLE_FILE_TIMER") != "1":
		return ""
	case name == "" || isWorker:
		return fresh
	default:
		return name
	}
}

// build builds the program if it is Go source. An interrupt ends the build.
func (o *options) build(ctx context.Context, program *launcher.Program, dir string, output io.Writer, interrupts <-chan os.Signal) error {
	if list := unignored(o.stopSignals); len(list) > 0 {
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

// logs makes the log directory of this job, if one was asked for or is needed.
func (o *options) logs(logger hclog.Logger) (launcher.LogSpec, error) {
	spec := launcher.LogSpec{
		Redirect: o.redirects, Tee: o.tee, Discard: o.logDir == os.DevNull,
		StdoutFilters: o.stdoutFilters, StderrFilters: o.stderrFilters,
		MaxSize: o.logMaxSize, Keep: o.logKeep,
	}
	wanted := o.logDir != "" || isUsed(o.redirects) || isUsed(o.tee) || len(o.stdoutFilters)+len(o.stderrFilters) > 0
	if !wanted || spec.Discard {
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
