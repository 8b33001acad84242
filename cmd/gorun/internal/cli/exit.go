package cli

import (
	"errors"
	"slices"
	"syscall"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/bench"
	"github.com/gorun/gorun/cmd/gorun/internal/health"
	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// The exit codes that are gorun's own. 93 (agent.NoRestart) is a worker's.
const (
	exitOK            = 0
	exitInternal      = 1
	exitUsage         = 2
	exitSystem        = 71 // EX_OSERR: the system refuses open files, processes or memory, or this node fails a health check
	exitRendezvous    = rendezvous.CodeUnformed
	exitTimeout       = 124 // as that of timeout(1)
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal

	maxExitCode = 255 // of a larger one the system keeps the lowest byte
)

// exitCode returns gorun's exit code for the error with which the job ended. It is 0 only if there was no error, whatever code
// another node has reported.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if code := errorCode(err); code > 0 && code <= maxExitCode {
		return code
	}
	return exitInternal
}

func errorCode(err error) int {
	switch {
	case is[*usageError](err), is[*bench.UsageError](err), is[*comm.ArgumentError](err),
		is[*rendezvous.MisuseError](err), is[*launcher.BuildError](err), is[*launcher.PreloadError](err), isBadPort(err):
		return exitUsage
	case is[*health.Error](err):
		return exitSystem
	case is[*launcher.NotExecutableError](err):
		return exitNotExecutable
	case is[*launcher.NotFoundError](err):
		return exitNotFound
	case is[*job.TimeoutError](err):
		return exitTimeout
	case isShortage(err):
		return exitSystem
	case is[*agent.StartError](err):
		return exitRendezvous
	}
	if failed, ok := errors.AsType[*agent.WorkerError](err); ok {
		return failed.Code
	}
	if launched, ok := errors.AsType[*launchedError](err); ok {
		return launched.Code
	}
	if closed, ok := errors.AsType[*rendezvous.ClosedError](err); ok {
		return closed.Outcome.Code
	}
	if stopped, ok := errors.AsType[*agent.InterruptError](err); ok {
		return exitSignal + int(stopped.Signal)
	}
	return exitInternal
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isShortage reports whether the system has too little of something, so that neither the rendezvous nor a flag is the cause.
func isShortage(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM}, func(errno error) bool { return errors.Is(err, errno) })
}

// isBadPort reports whether the user chose a master port that cannot be had, or an address that is not this machine's. If any port would have
// done, the user is not at fault.
func isBadPort(err error) bool {
	port, ok := errors.AsType[*network.PortError](err)
	return ok && (port.Port != 0 || errors.Is(err, syscall.EADDRNOTAVAIL))
}
