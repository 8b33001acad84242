package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/scratch"
	"github.com/gorun/gorun/cmd/gorun/internal/systemd"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/launcher/guard"
)

// A session is what a command that runs a job needs beside its options.
type session struct {
	node           launchedNode
	stdout, stderr *os.File
	std            *stdio
	logger         *slog.Logger
	interrupts     *interrupts
}

// A launchedNode is what gorun launch needs of a node that it has started; zero: something else has started it.
type launchedNode struct {
	host      string             // what gorun launch calls it
	published func(*status.Node) // gets each snapshot
	scaled    func(need int)     // learns how many nodes the job needs, if that has changed
}

// begin begins a session, and warns about the options. It catches signals until this process ends: none may leave
// temporary files behind, or change the exit code.
func (o *options) begin(command []string, node launchedNode, stdout, stderr *os.File) (*session, error) {
	s := &session{node: node, stdout: stdout, stderr: stderr, std: newStdio(stdout, stderr)}
	s.std.silent = node.host != ""
	var err error
	if s.logger, err = newLogger(s.std.err, node.host, s.std.color); err != nil {
		return nil, err
	}
	o.warn(s.logger, command, node)
	s.interrupts = o.catchInterrupts(s.logger)
	if !slices.Contains(o.stopSignals, os.Signal(syscall.SIGPIPE)) {
		s.std.watch(s.logger, s.interrupts.caught)
	}
	return s, nil
}

// finish says how the job has ended, when all output has been read.
func (s *session) finish(err error) error {
	return s.std.finish(err, drainTimeouts(err), s.interrupts.passed)
}

// run runs the job, or prints its plan. command is the program and its arguments.
func run(ctx context.Context, o *options, command []string, node launchedNode, stdout, stderr *os.File, etcd Etcd) error {
	if err := o.enterWorkDir(); err != nil {
		return err
	}
	if o.dryRun {
		logger, err := newLogger(stderr, node.host, wantsColor(stderr))
		if err != nil {
			return err
		}
		o.warn(logger, command, node)
		return dryRun(ctx, o, command, stdout)
	}
	s, err := o.begin(command, node, stdout, stderr)
	if err != nil {
		return err
	}
	o.note(s.logger)
	ctx, done := o.withTimeout(ctx, s.logger)
	defer done()
	return s.finish(o.orTimeout(ctx, s.runJob(ctx, o, command, etcd)))
}

// runJob wires the parts together.
func (s *session) runJob(ctx context.Context, o *options, command []string, etcd Etcd) (err error) {
	logger, interrupts := s.logger, s.interrupts
	ahead, err := guard.Start(o.nproc) // it starts while the rest is worked out
	if err != nil {
		return err
	}
	defer ahead.Close()
	signals := notify(o.forwards())
	program, config, err := o.config(command)
	if err != nil {
		return err
	}
	if note := o.threadsNote(program); note != "" {
		logger.Warn(note)
	}
	temp, err := scratch.New(o.runID, logger)
	if err != nil {
		return err
	}
	defer func() { temp.CloseAfter(err, logger) }()
	if o.elastic() || program.Source != "" || o.onFailure == replaceFailed { // it may be long without workers, whose guard would do this
		if err := temp.Keep(); err != nil {
			return err
		}
	}
	if err := o.build(ctx, program, temp.Bin(), s.stderr, interrupts.passed); err != nil {
		return err
	}
	defer guard.ReapAsInit()() // the build, the only child so far, has ended

	config.Spec.Argv, config.Spec.Guard = program.Argv, ahead
	config.Logger, config.Spec.Warn = logger, func(msg string) { logger.Warn(msg) }
	config.Spec.TempDir, config.ErrorDir, config.ProgressDir = temp.Path, temp.Path, temp.Progress()
	o.setStreams(&config, s)
	config.Spec.Pty = o.ptyFor(isTerminal(s.stdout), program.Python)
	config.Spec.Logs, err = interruptible(interrupts.passed, func() (launcher.LogSpec, error) { return o.logs(logger) })
	if err != nil {
		return err
	}
	if o.nnodes > 1 {
		if _, err := o.loopbackToken(); err != nil {
			return err
		}
	}
	server := o.control(&config, logger)
	defer server.Close()
	events, err := interruptible(interrupts.passed, func() (*eventLog, error) { return o.eventLogTo(s.std.spool, logger) })
	if err != nil {
		return err
	}
	defer func() { events.end(o.orTimeout(ctx, err)) }()
	notifier := systemd.Notify(logger)
	defer notifier.End()
	met := &etcdMemory{Etcd: etcd}
	page, err := o.statusPage(server, config.Spec.Recent, met, logger)
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
		if s.node.published != nil {
			s.node.published(n)
		}
		notifier.Publish(n)
		if page != nil {
			page.Publish(n)
		}
	}
	if config.Rendezvous, err = o.rendezvous(met, temp.Path, server, s); err != nil {
		return err
	}
	o.setSignals(&config, interrupts, signals)
	config.Start = start
	if config.Replace {
		defer o.replace(&config, temp.Path, logger)()
	}
	config.Health, config.Cooldown = o.health(config.Spec, s.stderr), o.healthCooldown
	if o.elastic() {
		config.Lease = o.conf.ttl()
	}
	return agent.Run(ctx, config)
}

// setStreams says what the workers read, and where their output goes.
func (o *options) setStreams(c *agent.Config, s *session) {
	c.Spec.Stdin, c.Spec.Stdout, c.Spec.Stderr, c.Spec.Spool = o.input(), s.stdout, s.stderr, s.std.spool
	c.Spec.Color = wantsColor(s.stdout) && wantsColor(s.stderr)
	c.Spec.Live = isTerminal(s.stdout) && isTerminal(s.stderr)
	c.Spec.Timestamps = o.timestamps
}

// setSignals says which signals end the job, go to its workers or suspend it.
func (o *options) setSignals(c *agent.Config, interrupts *interrupts, forwarded <-chan os.Signal) {
	c.Interrupts, c.Signals, c.Spec.StepSignals = interrupts.passed, forwarded, o.stepSignals()
	c.InterruptGrace = func() (time.Duration, string) { return interrupts.grace(o) }
	c.Suspends, c.Suspend = notify(o.suspends()), suspend
}

// warn logs warnings about the options, and about the program and its arguments.
func (o *options) warn(logger *slog.Logger, command []string, node launchedNode) {
	for _, w := range o.warnings(os.Environ()) {
		logger.Warn(w)
	}
	if w := o.misplaced(command); w != "" && node.host == "" { // gorun launch has said it
		logger.Warn(w)
	}
}

// warnings returns warnings about options that have no effect or are unsafe.
func (o *options) warnings(environ []string) (list []string) {
	if len(o.overridden) > 0 {
		list = append(list, "--standalone overrides "+strings.Join(o.overridden, ", "))
	}
	if _, given := o.given["master-addr"]; given && o.elastic() {
		list = append(list, o.given["master-addr"]+" has no effect: if nodes meet over etcd, the node of rank 0 announces its own address (--local-addr)")
	}
	if o.onlyHere() {
		list = append(list, "no other machine reaches node 0 at "+o.master.Addr+": if nodes are on other machines, give each --master-addr=HOST, the name or address of node 0's machine")
	}
	if o.workerTLS && o.nnodes == 1 {
		list = append(list, o.given["worker-tls"]+" has no effect: the job has one node, and its workers send each other nothing over a network")
	}
	if o.elastic() && !o.encrypted() && o.exposed() {
		list = append(list, "connections to the etcd at "+o.endpoint+" are not encrypted: anybody who can read the network can take part in the job; "+
			"use --rdzv-conf=protocol=https, or gorun etcd with a token")
	}
	limit, _ := manager.FindKillLimit(o.host.lookup, false) // the variables have been checked
	if late := limit.TooLate(o.grace, o.given["shutdown-timeout"]); late != "" {
		list = append(list, late)
	}
	if o.logDir == os.DevNull && len(o.stdoutFilters)+len(o.stderrFilters) > 0 {
		list = append(list, "filtered lines are not written to files, since --log-dir is "+os.DevNull)
	}
	return append(list, unknownVariables(environ)...)
}

// find finds the program. It builds nothing.
func (o *options) find(command []string) (*launcher.Program, error) {
	resolve := launcher.Resolve
	switch {
	case o.runPath:
		resolve = launcher.ResolveRunPath
	case o.module:
		return launcher.ResolveModule(command[0], command[1:])
	case o.noPython:
		resolve = launcher.ResolveExecutable
	}
	program, err := resolve(command[0], command[1:])
	return program, suggestProgram(err)
}

// config returns the program, and the part of the job's configuration that a dry run needs: the workers, their
// environment and their processors.
func (o *options) config(command []string) (program *launcher.Program, c agent.Config, err error) {
	if program, err = o.find(command); err != nil {
		return nil, c, err
	}
	procs, err := o.processors()
	if err != nil {
		return nil, c, err
	}
	inherited := env.Merge(systemd.WithoutVariables(os.Environ()), o.variables)
	c = agent.Config{
		Program: command[0], RunID: o.runID, Node: o.node(), MaxRestarts: o.maxRestarts, WorkerTLS: o.workerTLS,
		ReportTimeout: o.joinTimeout(), ExitBarrier: o.exitBarrier, MaxBackoff: o.maxBackoff,
		HangTimeout: o.hangTimeout,
		Environ:     o.withCommAddr(o.environ(inherited, procs.threads)), Prefix: o.prefix, Show: o.show,
		Args: len(command) - 1, LocalRankArg: !o.useEnv,
		MaxProcs: procs.maxProcs, Shares: procs.shares,
		Devices: procs.devices.Names, DeviceVariable: procs.devices.Variable,
		ErrorFile: o.path(os.Getenv("TORCHELASTIC_ERROR_FILE")),
		Replace:   o.onFailure == replaceFailed,
		Spec:      launcher.Spec{Argv: program.Argv, Grace: o.grace, Raw: !isUTF8(o.host.lookup)},
	}
	for _, b := range procs.bindings {
		c.CPUs, c.MemNodes = append(c.CPUs, b.CPUs), append(c.MemNodes, b.Nodes)
	}
	return program, c, nil
}

// build builds the program if it is Go source. An interrupt ends the build.
func (o *options) build(ctx context.Context, program *launcher.Program, dir string, output io.Writer, interrupts <-chan os.Signal) error {
	if list := unignored(o.stopSignals); len(list) > 0 {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, list...)
		defer stop()
	}
	err := program.Build(ctx, dir, output)
	switch {
	case is[*timeoutError](context.Cause(ctx)):
		return context.Cause(ctx)
	case err != nil && ctx.Err() != nil:
		return &agent.InterruptError{Signal: (<-interrupts).(syscall.Signal)}
	}
	return err
}
