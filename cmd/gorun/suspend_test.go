package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/proc"
)

// awaitSuspended waits until a process is suspended, or is not: nobody tells.
func awaitSuspended(t *testing.T, pid int, want bool) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		p, ok := proc.Read(pid)
		if ok && p.Suspended == want {
			return
		}
		if !ok || time.Since(begun) > patience/2 { // the job has patience
			tree, _ := exec.CommandContext(t.Context(), "ps", "-eo", "pid,ppid,stat,wchan:20,args").Output()
			t.Fatalf("process %d: suspended %t, want %t; is there %t\n%s", pid, p.Suspended, want, ok, tree)
		}
	}
}

// awaitHeld waits until a shell is suspended, or SIGSTOP waits for it: it may be in vfork until its child, which is suspended before, calls
// exec.
func awaitHeld(t *testing.T, pid int) {
	t.Helper()
	if !hasSignal(t, pid, "ShdPnd", syscall.SIGSTOP) {
		awaitSuspended(t, pid, true)
	}
}

// pidsIn waits for files that hold pids.
func pidsIn(t *testing.T, dir string, names ...string) (pids []int) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		awaitFile(t, path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// TestSuspendedJob: SIGTSTP suspends the workers, what they have started in sessions of their own, and gorun; SIGCONT
// continues all of them but what was suspended before. The grace period of a stop that was under way does not run out.
func TestSuspendedJob(t *testing.T) {
	t.Parallel()
	if isIgnored(t, syscall.SIGTSTP) {
		t.Skip("SIGTSTP is ignored by who started this test, and so it stays")
	}
	dir := t.TempDir()
	const write = `echo $$ >x.$0; mv x.$0 pid.$0; `
	j := startJob(t, `cd `+dir+`
		setsid sh -c '`+write+`while :; do sleep 0.01; done' helper$RANK &
		setsid sh -c '`+write+`exec sleep 1000' still$RANK &
		echo $$ >x.$RANK; mv x.$RANK pid.$RANK
		trap 'echo asked; until [ -e finish ]; do sleep 0.01; done; exit 7' TERM
		while :; do sleep 0.01; done`, "--shutdown-timeout=3")
	running := pidsIn(t, dir, "pid.0", "pid.1", "pid.helper0", "pid.helper1")
	still := pidsIn(t, dir, "pid.still0", "pid.still1")
	for _, pid := range still { // somebody looks at them
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		awaitSuspended(t, pid, true)
	}
	hold := func() {
		j.signal(syscall.SIGTSTP)
		awaitSuspended(t, j.cmd.Process.Pid, true)
		for _, pid := range running {
			awaitHeld(t, pid)
		}
	}
	goOn := func() {
		j.signal(syscall.SIGCONT)
		for _, pid := range append(running, j.cmd.Process.Pid) {
			awaitSuspended(t, pid, false)
		}
	}
	hold()
	goOn()
	for _, pid := range still {
		awaitSuspended(t, pid, true)
	}
	j.signal(syscall.SIGTERM)
	j.expect("asked")
	hold()
	time.Sleep(4 * time.Second) // longer than the grace period: only time can show that it does not count
	goOn()
	for _, pid := range append(still, running[2:]...) { // so that nothing outlives the workers
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "finish"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.end(143, "gorun: stopped by signal 15 (SIGTERM)\n")
}

// isIgnored: a process inherits what is ignored.
func isIgnored(t *testing.T, sig syscall.Signal) bool {
	t.Helper()
	return hasSignal(t, os.Getpid(), "SigIgn", sig)
}

// hasSignal reports whether a signal is in a set of /proc/<pid>/status. Those of a process that has ended are empty.
func hasSignal(t *testing.T, pid int, set string, sig syscall.Signal) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), "\n"+set+":\t")
	bits, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(bits, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return mask&(1<<(sig-1)) != 0
}
