package launcher

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/launcher/guard"
	"github.com/gorun/gorun/launcher/spool"
)

// Spec describes what to start on this node in one attempt.
type Spec struct {
	// Host is this node, as people call it, for the deaths of its workers.
	Host string
	// Argv is the program with its arguments, for every worker that has no Argv of its own (see Resolve). Argv[0] is the
	// path of the executable.
	Argv []string
	// Workers are the processes to start, in the order of their local ranks.
	Workers []WorkerSpec
	// Apart says that a worker which ends takes nothing of the others with it, and that another may take its place
	// (see Gang.Replace).
	Apart bool
	// Grace is the time from the signal of Stop to SIGKILL; 0: kill at once. After SIGKILL, the gang waits as long again,
	// but at least 5 s and at most 30 s. Then Warn gets a line about processes that have not ended, and the gang ends
	// without them. Before that, processes that have outlived their worker have guard.LeftTimeout to end.
	Grace time.Duration
	// StepSignals are the signals that end the job, if whoever sends the agent a signal may send it to every process below the agent
	// too. Slurm does that with proctrack/linuxproc; with proctrack/cgroup and proctrack/pgid, it signals the agent only. What reaches the
	// gang's guard has reached the workers: it is not sent to them a second time, and a worker that ends after it has been stopped. Empty:
	// nobody does so.
	StepSignals []syscall.Signal
	// Stdin is the stdin of the first worker; nil: /dev/null, as for the others. The gang does not close it.
	Stdin *os.File
	// Stdout and Stderr are the console: whole lines of the workers' streams arrive here with the worker's
	// Prefix in front, in one Write for as many lines as there are, up to 16 KiB. A line longer than 1 MiB is cut into lines
	// of 1 MiB, or up to 3 bytes fewer where that would split a character. What is not UTF-8 becomes U+FFFD. nil discards.
	Stdout, Stderr io.Writer
	// Pty, if set, reports whether stdout of the worker with a local rank is a pseudo terminal, of which bytes come unchanged, and not a
	// pipe. The libraries of C and other languages hold back what is written to a pipe, and lose it if the program crashes.
	Pty func(localRank int) bool
	// Spool writes to the console and to the log files, and outlives the gang: what has been put into it when Exits ends
	// may not be written yet. It must be set.
	Spool *spool.Spool
	// Console, if set, shows the output of all gangs that share it (see NewConsole). Gangs that write to one terminal must share
	// one: the output of each erases the progress bars of the others.
	Console *Console
	// Raw says that the console does not use UTF-8: bytes pass unchanged.
	Raw bool
	// Color paints the workers' prefixes, each rank in its own color.
	Color bool
	// Timestamps puts the time at which a line has come before its prefix on the console, as 2026-01-02T15:04:05.678901Z. Progress bars
	// have none, nor do log files.
	Timestamps bool
	// Live says that Stdout and Stderr are terminals: a line so far that ends in a carriage return (a progress bar) is
	// shown at once, erased by the next output, and of a line comes only what the last carriage return begins.
	// Otherwise carriage returns are bytes like others.
	Live bool
	// Logs are the files of this attempt.
	Logs LogSpec
	// Recent, if set, gets all bytes that workers write, and keeps the last ones. The stream is its Std.
	Recent *Recent
	// Guard, if set, is a guard that was started early (see guard.Start), for one gang after the other. If it is lost, each gang has one of
	// its own.
	Guard *guard.Guard
	// TempDir, if set, is a directory that a guard of the gang's own removes if the agent dies before it can do so. It may hold the program
	// (see Program.Build).
	TempDir string
	// Preload, if set, says what workers find imported.
	Preload *Preload
	// Warn, if set, gets one line about each problem that the job survives, for example a full disk. Several
	// goroutines call it.
	Warn func(msg string)
}

// WorkerSpec is one worker of a Spec.
type WorkerSpec struct {
	Rank     int      // in the world; names the worker in its Exit
	Argv     []string // its program and arguments, as in Spec; empty: Spec.Argv
	Env      []string // its complete environment, "NAME=value"
	CPUs     []int    // that it may run on; empty: those of the agent
	MemNodes []int    // NUMA nodes that its memory is to come from; empty: any
	Prefix   string   // stands before each of its lines on the console
	Mute     bool     // keeps its output from the console; logs keep all
	Show     int      // bytes of each of its streams that the console shows; 0: all
}

// killTimeout is how long processes may take to end after SIGKILL: as long as they had to stop, within limits.
func (s *Spec) killTimeout() time.Duration { return min(max(s.Grace, 5*time.Second), 30*time.Second) }

// StopTimeout returns how long a gang with this Spec.Grace may take to end after Stop.
func StopTimeout(grace time.Duration) time.Duration {
	return grace + guard.LeftTimeout + (&Spec{Grace: grace}).killTimeout()
}

// check finds errors that would be harder to explain in the guard.
func (s *Spec) check() error {
	if len(s.Workers) == 0 {
		return errors.New("launcher: a gang needs at least one worker")
	}
	if s.Spool == nil {
		return errors.New("launcher: a gang needs a Spool for its output")
	}
	if err := checkArgv(s.Argv); err != nil {
		return err
	}
	for i, w := range s.Workers {
		if len(s.argv(i)) == 0 {
			return fmt.Errorf("launcher: local rank %d has no program", i)
		}
		if err := checkArgv(w.Argv); err != nil {
			return err
		}
		for _, kv := range w.Env {
			if strings.ContainsRune(kv, 0) {
				name, _, _ := strings.Cut(kv, "=") // the value may be a secret
				return fmt.Errorf("environment variable %q has a NUL byte, which no process can be given", name)
			}
		}
	}
	return nil
}

func checkArgv(argv []string) error {
	for _, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %q has a NUL byte, which no process can be given", arg)
		}
	}
	return nil
}

// argv returns the program of a worker, with its arguments.
func (s *Spec) argv(local int) []string {
	if own := s.Workers[local].Argv; len(own) > 0 {
		return own
	}
	return s.Argv
}

func (s *Spec) warn(format string, args ...any) {
	if s.Warn != nil {
		s.Warn(fmt.Sprintf(format, args...))
	}
}
