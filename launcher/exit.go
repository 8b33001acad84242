package launcher

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit says how a worker ended.
type Exit struct {
	Rank        int            // in the world
	LocalRank   int            // on its node
	Pid         int            // process id it had
	Code        int            // exit code; 128+n if signal n ended it
	Signal      syscall.Signal // what ended it; 0: it exited by itself
	At          time.Time      // when the guard saw it, by this machine's clock
	Stopped     bool           // Stop, Kill or Interrupt came before it ended, so it may be no fault of its own
	Interrupt   syscall.Signal // a signal to all processes of the step that came before Stop and Kill (see Spec.StepSignals); 0: none
	GuardLost   bool           // the guard died and the worker was killed for it; Code and Signal say SIGKILL
	OutOfMemory bool           // the kernel has killed a process of its cgroup because memory ran out: it, if SIGKILL ended it, or perhaps a child
	Hung        string         // why gorun killed it, if that is because it made no progress (see Gang.Fail); empty: it is not
	Fault       string         // what it did wrong in the rounds of its job, so that the agent killed it, if it had not ended; empty: nothing
	Revoked     string         // why it has revoked its round, which is how it has failed; it may go on in the next one. Empty: it has not
	Tail        []string       // its last lines on stderr: at most 20, of at most 1024 bytes each
}

// ReturnCode returns the exit code, or -n if signal n ended the worker, as in Python's subprocess and in torchrun.
func (e Exit) ReturnCode() int {
	if e.Signal != 0 {
		return -int(e.Signal)
	}
	return e.Code
}

// Failed reports whether the worker ended with anything but exit code 0.
func (e Exit) Failed() bool { return e.Code != 0 }

// String returns one line such as "exit code 3" or "signal 9 (SIGKILL)".
func (e Exit) String() string {
	if e.Revoked != "" {
		return "revoked its round: " + e.Revoked
	}
	if e.Hung != "" {
		return e.status() + ": " + e.Hung
	}
	switch {
	case e.Fault != "" && e.Signal == 0:
		return e.Fault
	case e.Fault != "":
		return e.status() + ": it " + e.Fault
	}
	return e.status()
}

func (e Exit) status() string {
	switch {
	case e.GuardLost:
		return "killed because the guard process of its gang died"
	case e.Signal == 0:
		return fmt.Sprintf("exit code %d", e.Code)
	}
	if name := unix.SignalName(e.Signal); name != "" {
		return fmt.Sprintf("signal %d (%s)", int(e.Signal), name)
	}
	return fmt.Sprintf("signal %d", int(e.Signal))
}

// setHung notes why gorun has killed the worker, if it has: then the kernel did not, for want of memory.
func (e *Exit) setHung(why *string) {
	if why != nil {
		e.Hung, e.Stopped, e.OutOfMemory = *why, false, false
	}
}

// setStatus decodes what wait(2) returned.
func (e *Exit) setStatus(status syscall.WaitStatus) {
	if status.Signaled() {
		e.Signal = status.Signal()
		e.Code = 128 + int(e.Signal)
		return
	}
	e.Code = status.ExitStatus()
}
