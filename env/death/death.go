// Package death says how a worker ended, and which of several deaths is the root cause of the others. It is pure. The launcher makes a
// Death; whoever learns of it gets the same value: the agent, other nodes, workers that live on. Words are made of it where people read them.
package death

import (
	"fmt"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Death is how a worker ended, or how it failed before it ended: then its cause is Hang or Revoked. Agents send it to each other and to
// workers as JSON (docs/elastic.md).
type Death struct {
	Rank        int            `json:"rank"` // in the round that it ended
	LocalRank   int            `json:"local_rank"`
	Host        string         `json:"host"` // of its node, as people call it
	Pid         int            `json:"pid,omitempty"`
	ExitCode    int            `json:"exit_code,omitempty"`     // -n: signal n ended it, as in Python's subprocess and in torchrun
	At          time.Time      `json:"at,omitzero"`             // by the clock of its node
	Cause       Cause          `json:"cause,omitempty"`         // empty: ExitCode says everything
	Why         string         `json:"why,omitempty"`           // more about the cause, see there
	OutOfMemory bool           `json:"out_of_memory,omitempty"` // the kernel killed it, or perhaps only a child of it
	Stopped     bool           `json:"stopped,omitempty"`       // gorun had asked it to end, so it may be no fault of its own
	Interrupt   syscall.Signal `json:"interrupt,omitempty"`     // a signal to all processes of the job's step that came before that; 0: none
	Stderr      []string       `json:"stderr,omitempty"`        // its last lines there, as far as they are known
}

// A Cause says more than the exit code. Most are something that gorun has done.
type Cause string

// The causes.
const (
	Hang      Cause = "hang"    // gorun killed it, or is about to, because it made no progress; Why says for how long
	Fault     Cause = "fault"   // it broke the rules of rounds, so gorun killed it if it had not ended; Why says how: "did not enter round 2"
	Revoked   Cause = "revoked" // it ended its round, and lives on if it can; Why is its reason
	GuardLost Cause = "guard"   // its guard died, so it was killed
	Unknown   Cause = "unknown" // nobody knows how it ended; Why is all that is known: "its node b/7 is lost"

	// Of FailureCause only:
	ByCode   Cause = "exit_code" // it exited with a code other than 0
	BySignal Cause = "signal"    // a signal ended it
)

// FailureCauses are the causes that FailureCause returns for workers of an agent's own node.
func FailureCauses() []Cause { return []Cause{ByCode, BySignal, Hang, Fault, Revoked, GuardLost} }

// FailureCause returns why the worker failed: its cause, or else how it ended.
func (d Death) FailureCause() Cause {
	switch {
	case d.Cause != "":
		return d.Cause
	case d.Signal() != 0:
		return BySignal
	default:
		return ByCode
	}
}

// Signal returns the signal that ended the worker; 0: it exited by itself.
func (d Death) Signal() syscall.Signal { return syscall.Signal(max(0, -d.ExitCode)) }

// Code returns the exit code as a shell has it: 128+n if signal n ended the worker.
func (d Death) Code() int {
	if d.ExitCode < 0 {
		return 128 - d.ExitCode
	}
	return d.ExitCode
}

// Failed reports whether the worker ended with anything but exit code 0, or nobody knows how it ended.
func (d Death) Failed() bool { return d.ExitCode != 0 || d.Cause == Unknown }

// IsCrash reports whether the worker failed by itself: it hung, or a signal that is not gorun's ended it. SIGABRT and
// SIGPIPE do not count: a worker that has lost another one may end by these.
func (d Death) IsCrash() bool {
	sig := d.Signal()
	bySignal := sig != 0 && sig != syscall.SIGABRT && sig != syscall.SIGPIPE && !d.Stopped
	return d.Cause == Hang || bySignal
}

// String says in one line how the worker ended: "exit code 3", "signal 9 (SIGKILL)".
func (d Death) String() string {
	switch d.Cause {
	case Unknown:
		return d.Why
	case Revoked:
		return "revoked its round: " + d.Why
	case GuardLost:
		return "killed because the guard process of its gang died"
	case Hang:
		return d.status() + ": " + d.Why
	case Fault:
		if d.ExitCode >= 0 {
			return d.Why
		}
		return d.status() + ": it " + d.Why
	default:
		return d.status()
	}
}

// Describe says whose death it is, and how it ended: "rank 1 on node-a: exit code 3".
func (d Death) Describe() string { return fmt.Sprintf("rank %d on %s: %s", d.Rank, d.Host, d) }

func (d Death) status() string {
	if d.ExitCode < 0 {
		return SignalName(d.Signal())
	}
	return fmt.Sprintf("exit code %d", d.ExitCode)
}

// SignalName returns text such as "signal 15 (SIGTERM)".
func SignalName(sig syscall.Signal) string { return "signal " + SignalNumber(sig) }

// SignalNumber returns text such as "15 (SIGTERM)".
func SignalNumber(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return fmt.Sprintf("%d (%s)", int(sig), name)
	}
	return strconv.Itoa(int(sig))
}
