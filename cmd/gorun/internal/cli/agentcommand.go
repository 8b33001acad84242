package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/remote"
)

// agentCommand is the other end of gorun launch, on each host.
func agentCommand() *cobra.Command {
	return &cobra.Command{
		Use: remote.Command, Hidden: true, Short: "What gorun launch runs on hosts", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if isatty.IsTerminal(os.Stdin.Fd()) {
				return usagef("gorun agent is what gorun launch runs on hosts; to run a program with this name, write gorun -- agent")
			}
			return remote.Main()
		},
	}
}

// runNode runs a node of a launched job, whose launcher says how it has ended.
func runNode(here host, args []string, stdout, stderr *os.File, etcd Etcd) int {
	report := os.NewFile(remote.ReportFD, "the proxy")
	syscall.CloseOnExec(remote.ReportFD)
	here.launched = true
	interval, err := time.ParseDuration(args[0])
	if err != nil || interval <= 0 {
		return exitUsage // only the proxy runs this
	}
	go func() {
		for ; ; time.Sleep(interval) {
			_, _ = report.Write(frame.Append(nil, frame.Heartbeat, nil)) // if the proxy has died, so has this process
		}
	}()
	byStop := false // also if all workers then exit 0, of which the error says nothing
	cmd := newCommand(here, func(ctx context.Context, o *options, command []string) error {
		node := launchedNode{
			host:      args[1],
			scaled:    func(need int) { _, _ = report.Write(frame.AppendScaled(nil, need)) },
			published: func(n *status.Node) { byStop = byStop || n.Stopped },
		}
		return run(ctx, o, command, node, stdout, stderr, etcd)
	})
	cmd.SetArgs(args[2:])
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err = cmd.Execute()
	o := nodeOutcome(err)
	o.ByStop = o.ByStop || byStop && err == nil
	_, _ = report.Write(frame.Append(nil, frame.Ended, frame.Encode(o))) // if the proxy has died, there is nobody to tell
	return exitCode(err)
}

// nodeOutcome returns how a node ended, as its launcher learns it.
func nodeOutcome(err error) frame.Outcome {
	o := frame.Outcome{Code: exitCode(err)}
	if err == nil {
		return o
	}
	o.Cause, o.Text = frame.Other, frame.CutText(agent.Printable(oneLine(err.Error())))
	if failed, ok := errors.AsType[*agent.WorkerError](err); ok {
		o.Cause, o.Text = frame.Worker, frame.CutText(failed.Summary()) // the launcher chooses one, and knows which hosts are lost
		if failed.Elsewhere != nil {
			o.Cause = frame.Elsewhere
		}
	} else if stopped, ok := errors.AsType[*agent.InterruptError](err); ok {
		o.Cause, o.Signal, o.Killed, o.ByStop = frame.Stopped, int(stopped.Signal), stopped.Killed, stopped.ByStop()
		switch {
		case is[*job.TimeoutError](err):
			o.Cause = frame.Timeout
		case stopped.Drained():
			o.Cause = frame.Drained
		}
	}
	return o
}
