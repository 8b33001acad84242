package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/launcher/guard"
)

// A session is what a command that runs a job needs beside its options.
type session struct {
	node           launchedNode
	stdout, stderr *os.File
	std            *stdio
	logger         *slog.Logger
	interrupts     *job.Interrupts
	forwarded      <-chan os.Signal
}

// A launchedNode is what gorun launch needs of a node that it has started; zero: something else has started it.
type launchedNode struct {
	host      string             // what gorun launch calls it
	published func(*status.Node) // gets each snapshot
	scaled    func(need int)     // learns how many nodes the job needs, if that has changed
}

// begin begins a session, and warns about the options. It catches signals until this process ends: none may leave
// temporary files behind, or change the exit code.
func begin(o *options, command []string, node launchedNode, stdout, stderr *os.File) (*session, error) {
	s := &session{node: node, stdout: stdout, stderr: stderr, std: newStdio(stdout, stderr)}
	s.std.silent = node.host != ""
	var err error
	if s.logger, err = newLogger(s.std.err, node.host, s.std.color); err != nil {
		return nil, err
	}
	o.warn(s.logger, command, node)
	s.interrupts = job.CatchInterrupts(o.stopSignals, func() manager.KillLimit {
		limit, _ := manager.FindKillLimit(o.host.lookup, true) // the variables have been checked
		return limit
	}, s.logger)
	s.forwarded = job.Notify(job.Forwards(o.stopSignals))
	if !slices.Contains(o.stopSignals, os.Signal(syscall.SIGPIPE)) {
		s.std.watch(s.logger, s.interrupts.Caught)
	}
	return s, nil
}

// finish says how the job has ended, when all output has been read.
func (s *session) finish(err error) error {
	return s.std.finish(err, drainTimeouts(err), s.interrupts.Passed)
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
		p, err := o.plan(command, stdout, stderr)
		if err != nil {
			return err
		}
		return dryRun(ctx, o, p, stdout)
	}
	s, err := begin(o, command, node, stdout, stderr)
	if err != nil {
		return err
	}
	o.note(s.logger)
	return s.finish(s.run(ctx, o, command, etcd))
}

func (s *session) run(ctx context.Context, o *options, command []string, etcd Etcd) error {
	ahead, err := guard.Start(o.nproc) // it starts while the rest is worked out
	if err != nil {
		return err
	}
	p, err := o.plan(command, s.stdout, s.stderr)
	if err != nil {
		ahead.Close()
		return err
	}
	if note := o.threadsNote(p.Program); note != "" {
		s.logger.Warn(note)
	}
	return job.Run(ctx, p, &job.Session{
		Stdout: s.stdout, Stderr: s.stderr, Spool: s.std.spool, Logger: s.logger, Debug: atDebug(s.logger),
		Interrupts: s.interrupts, Forwarded: s.forwarded, Guard: ahead, Etcd: etcd, ExitCode: exitCode,
		Published: s.node.published, Scaled: s.node.scaled,
	})
}

// enterWorkDir makes the directory of --wdir that of this process, and so of all that it starts. As with mpirun and env -C, a relative
// path to the program then begins there.
func (o *options) enterWorkDir() error {
	if o.workDir == "" {
		return nil
	}
	dir, err := filepath.Abs(o.workDir)
	if err != nil {
		return err
	}
	if o.startDir, err = os.Getwd(); err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return usagef("%s: %w", o.given["wdir"], agent.Bare(err))
	}
	o.workDir = dir
	return os.Setenv("PWD", dir) // which workers inherit
}

// path returns the path that a file of gorun's own has now: other flags than --wdir mean files where gorun was started.
func (o *options) path(file string) string {
	if file == "" || o.startDir == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(o.startDir, file)
}
