package agent

import (
	"fmt"
	"syscall"

	"github.com/gorun/gorun/launcher"
)

// A StartError says that there are no workers: no round was to be had, or they could not be started in it.
type StartError struct{ Err error }

// Error is that of the cause.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the rendezvous or of the launcher.
func (e *StartError) Unwrap() error { return e.Err }

// An InterruptError says that a signal to the agent ended the job before its workers had all exited 0.
type InterruptError struct {
	Signal syscall.Signal // the first one
	Killed int            // workers that were killed since they did not stop, or by a second signal
}

// Error is one line.
func (e *InterruptError) Error() string {
	text := "stopped by " + signalName(e.Signal)
	switch e.Killed {
	case 0:
		return text
	case 1:
		return text + "; 1 worker did not stop by itself and was killed"
	default:
		return fmt.Sprintf("%s; %d workers did not stop by themselves and were killed", text, e.Killed)
	}
}

// A WorkerError says that a worker failed and is not started again. Its Summary is for people.
type WorkerError struct {
	Root        launcher.Exit   // the root cause
	Code        int             // exit code of the job
	Others      []launcher.Exit // that failed on their own as well, in order
	Stopped     []launcher.Exit // that failed since the agent stopped them, in order
	Reports     map[int]Report  // by rank; of those of the above that left an error file
	Restarts    int             // used before
	MaxRestarts int
	Program     string // as the user named it
	Host        string
}

// Error is one line.
func (e *WorkerError) Error() string { return describe(e.Root) }

// workerError accuses the worker at index root of the exits.
func (m *machine) workerError(root int) *WorkerError {
	e := &WorkerError{Root: m.exits[root], Restarts: m.restarts, MaxRestarts: m.maxRestarts}
	for i, x := range m.exits {
		switch {
		case i == root || !x.Failed():
		case x.Stopped:
			e.Stopped = append(e.Stopped, x)
		default:
			e.Others = append(e.Others, x)
		}
	}
	return e
}

// countKilled counts the workers that had to be killed.
func countKilled(exits []launcher.Exit) (n int) {
	for _, x := range exits {
		if x.Stopped && x.Signal == syscall.SIGKILL {
			n++
		}
	}
	return n
}

func describe(x launcher.Exit) string {
	return fmt.Sprintf("rank %d (local rank %d, pid %d): %s", x.Rank, x.LocalRank, x.Pid, x)
}

// signalName says "signal 15 (SIGTERM)".
func signalName(sig syscall.Signal) string { return launcher.Exit{Signal: sig}.String() }
