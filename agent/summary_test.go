package agent

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/launcher"
)

var at = time.Date(2026, 1, 2, 15, 4, 5, 678e6, time.UTC)

func TestSummary(t *testing.T) {
	e := &WorkerError{
		Root: launcher.Exit{Rank: 5, LocalRank: 1, Pid: 4242, Code: 3, At: at,
			Tail: []string{"Traceback:", "RuntimeError: boom"}},
		Others:  []launcher.Exit{{Rank: 7, LocalRank: 3, Pid: 4244, Code: 139, Signal: syscall.SIGSEGV}},
		Stopped: 2, Restarts: 2, MaxRestarts: 2, Program: "train.py", Host: "node-a",
	}
	const want = `============================================================
train.py FAILED
------------------------------------------------------------
Root cause (first failure):
  rank 5 (local rank 1, host node-a, pid 4242): exit code 3
  at 2026-01-02 15:04:05.678
  last lines on stderr:
    | Traceback:
    | RuntimeError: boom
Also failed on their own:
  rank 7 (local rank 3, host node-a, pid 4244): signal 11 (SIGSEGV)
2 other workers were stopped by gorun.
2 restarts were allowed, and all were used.
============================================================
`
	if got := e.Summary(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	if got, want := e.Error(), "rank 5 (local rank 1, pid 4242): exit code 3"; got != want {
		t.Errorf("Error: %q, want %q", got, want)
	}
}

func TestSummaryNotes(t *testing.T) {
	killed := launcher.Exit{Code: 137, Signal: syscall.SIGKILL, At: at}
	lost, stopped := killed, killed
	lost.GuardLost, stopped.Stopped = true, true
	const oom = "out-of-memory"
	for _, c := range []struct {
		name         string
		e            WorkerError
		has, without string
	}{
		{"killed by somebody", WorkerError{Root: killed}, oom, "restart"},
		{"guard killed", WorkerError{Root: lost}, "guard", oom},
		{"killed by us", WorkerError{Root: stopped}, "signal 9 (SIGKILL)", oom},
		{"own code", WorkerError{Root: launcher.Exit{Code: 137}}, "exit code 137", oom},
		{"no stderr", WorkerError{Root: killed}, "SIGKILL", "last lines"},
		{"no restart", WorkerError{Root: launcher.Exit{Code: 93}, MaxRestarts: 4, Restarts: 1},
			"Exit code 93 asks for no restart; 1 of 4 were used.", "allowed"},
		{"interrupted", WorkerError{Root: killed, MaxRestarts: 3, Restarts: 1}, "1 of 3 restarts were used.", "allowed"},
		{"one restart", WorkerError{Root: killed, MaxRestarts: 1, Restarts: 1}, "1 restart was allowed, and it was used.", "were"},
		{"one stopped", WorkerError{Root: killed, Stopped: 1}, "1 other worker was stopped by gorun.", "workers"},
		{"many failed", WorkerError{Root: killed, Others: make([]launcher.Exit, 30)}, "  and 22 more\n", "stopped"},
	} {
		got := c.e.Summary()
		if !strings.Contains(got, c.has) || strings.Contains(got, c.without) {
			t.Errorf("%s: want %q and not %q in\n%s", c.name, c.has, c.without, got)
		}
	}
}

func TestInterruptErrorText(t *testing.T) {
	for killed, want := range []string{
		"stopped by signal 2 (SIGINT)",
		"stopped by signal 2 (SIGINT); 1 worker did not stop by itself and was killed",
		"stopped by signal 2 (SIGINT); 2 workers did not stop by themselves and were killed",
	} {
		if got := (&InterruptError{Signal: syscall.SIGINT, Killed: killed}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
