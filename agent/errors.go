package agent

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// A StartError says that there are no workers, because no round formed or the workers could not be started.
type StartError struct{ Err error }

// Error returns the text of the cause.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the rendezvous or of the launcher.
func (e *StartError) Unwrap() error { return e.Err }

// An InterruptError says that a signal to the agent, or a command that counts as one, ended the job before all workers had exited 0.
type InterruptError struct {
	Signal syscall.Signal // the first one
	By     Command        // what asked for the end instead of a signal; its zero value: it was the signal
	Cause  error          // of the end of Run's context, if that came before any signal; nil: it did not, or has no cause
	Killed int            // workers that were killed since they did not stop, or by a second signal
}

// Error is one line.
func (e *InterruptError) Error() string {
	text := "stopped by " + interrupted{e.Signal, e.By}.name()
	if e.Signal == syscall.SIGPIPE {
		text = "stopped: nobody reads the output any more (SIGPIPE)"
	}
	if e.Killed > 0 {
		text += "; " + plural(e.Killed, "worker did not stop by itself and was killed", "workers did not stop by themselves and were killed")
	}
	if e.Cause != nil {
		text = e.Cause.Error() + ": " + text
	}
	return text
}

// Unwrap returns the cause.
func (e *InterruptError) Unwrap() error { return e.Cause }

// Drained reports whether the node has left a job that goes on without it, because somebody asked for that.
func (e *InterruptError) Drained() bool { return e.By.Kind == CommandDrain && !e.By.Force }

// ByStop reports whether somebody has stopped the job, which may have other nodes.
func (e *InterruptError) ByStop() bool { return e.By.stops() }

// A WorkerError says that a worker failed, on this node or another, and that the gang is not restarted. Its Summary is
// for people.
type WorkerError struct {
	Root        death.Death         // the root cause
	Elsewhere   *rendezvous.Failure // the root cause as its node reported it; nil: it is this node's
	Code        int                 // exit code of the job
	Others      []death.Death       // of this node, that failed on their own as well, in order
	Stopped     []death.Death       // of this node, that failed since the agent stopped them, in order
	Exited      []death.Death       // of this node, that had exited with code 0 before anybody was stopped, in order
	ErrorFiles  map[int]ErrorFile   // by rank; of those of this node that left an error file
	Flights     string              // pattern of the files in which workers of this node left what they did last (see comm.Flight); empty: none did
	Where       []string            // where the ranks of this node were, if the root cause hung
	Tied        []int               // the ranks of this node that hang, and of which any may be the root cause; nil: it is known
	Restarts    int                 // used before
	MaxRestarts int                 // 0 as well if it is not known how many were used
	Program     string              // as the user named it
	Python      string              // that runs it; empty: it is no Python program
	Host        string              // of this node
	SummaryHost string              // who prints the summary, if not this node, where Brief is enough
}

// Error is one line.
func (e *WorkerError) Error() string {
	if e.Elsewhere != nil {
		return e.Elsewhere.String()
	}
	return describe(e.Root)
}

// add sorts the exits of this node, without the root cause, into the lists of e.
func (e *WorkerError) add(exits []death.Death) {
	for _, x := range exits {
		switch {
		case !x.Failed() && x.Stopped:
		case !x.Failed():
			e.Exited = append(e.Exited, x)
		case x.Stopped:
			e.Stopped = append(e.Stopped, x)
		default:
			e.Others = append(e.Others, x)
		}
	}
}

// failed returns the workers of this node that failed, the root cause first if it is one of them.
func (e *WorkerError) failed() (list []death.Death) {
	if e.Elsewhere == nil {
		list = append(list, e.Root)
	}
	return slices.Concat(list, e.Others, e.Stopped)
}

// countKilled counts the workers that had to be killed.
func countKilled(exits []death.Death) (n int) {
	for _, x := range exits {
		if x.Stopped && x.Signal() == syscall.SIGKILL {
			n++
		}
	}
	return n
}

func describe(x death.Death) string {
	return fmt.Sprintf("rank %d (local rank %d, pid %d): %s", x.Rank, x.LocalRank, x.Pid, x)
}
