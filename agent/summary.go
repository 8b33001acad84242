package agent

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/gorun/gorun/launcher"
)

const (
	maxOthers = 8 // failures that are listed one by one beside the root cause
	ruler     = 60
)

// Summary tells in one block what failed, the root cause first. It ends with a line break.
//
//	============================================================
//	train.py FAILED
//	------------------------------------------------------------
//	Root cause (first failure):
//	  rank 1 (local rank 1, host node-a, pid 4242): exit code 3
//	  at 2026-01-02 15:04:05.678
//	  last lines on stderr:
//	    | RuntimeError: boom
//	Also failed on their own:
//	  rank 3 (local rank 3, host node-a, pid 4244): signal 11 (SIGSEGV)
//	2 other workers were stopped by gorun.
//	All 2 restarts were used.
//	============================================================
func (e *WorkerError) Summary() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("%s", strings.Repeat("=", ruler))
	line("%s FAILED", e.Program)
	line("%s", strings.Repeat("-", ruler))
	line("Root cause (first failure):")
	line("  %s", e.describe(e.Root))
	line("  at %s", e.Root.At.Format("2006-01-02 15:04:05.000"))
	if e.Root.Signal == syscall.SIGKILL && !e.Root.Stopped && !e.Root.GuardLost {
		line("  gorun did not send it: the out-of-memory killer may have; see dmesg or the limits of the container")
	}
	if len(e.Root.Tail) > 0 {
		line("  last lines on stderr:")
		for _, text := range e.Root.Tail {
			line("    | %s", text)
		}
	}
	if len(e.Others) > 0 {
		line("Also failed on their own:")
		for _, x := range e.Others[:min(len(e.Others), maxOthers)] {
			line("  %s", e.describe(x))
		}
		if more := len(e.Others) - maxOthers; more > 0 {
			line("  and %d more", more)
		}
	}
	if e.Stopped > 0 {
		line("%s stopped by gorun.", plural(e.Stopped, "other worker was", "other workers were"))
	}
	if note := e.restartNote(); note != "" {
		line("%s", note)
	}
	line("%s", strings.Repeat("=", ruler))
	return b.String()
}

func (e *WorkerError) describe(x launcher.Exit) string {
	return fmt.Sprintf("rank %d (local rank %d, host %s, pid %d): %s", x.Rank, x.LocalRank, e.Host, x.Pid, x)
}

// restartNote explains why there is no other attempt.
func (e *WorkerError) restartNote() string {
	switch {
	case e.Root.Code == NoRestart:
		return fmt.Sprintf("Exit code %d asks for no restart; %d of %d were used.", NoRestart, e.Restarts, e.MaxRestarts)
	case e.MaxRestarts == 0:
		return ""
	case e.Restarts == e.MaxRestarts:
		return fmt.Sprintf("%s used.", plural(e.Restarts, "restart was allowed, and it was", "restarts were allowed, and all were"))
	default:
		return fmt.Sprintf("%d of %d restarts were used.", e.Restarts, e.MaxRestarts)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
