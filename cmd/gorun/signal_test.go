package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds what should take milliseconds.
const patience = time.Minute

// raceExitsAtOnce keeps the race detector from waiting a second for other goroutines at every exit.
const raceExitsAtOnce = "GORACE=atexit_sleep_ms=0"

// A job is a running gorun.
type job struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Scanner // of its stdout
	came   map[string]int // how often each text has come, and has not been expected
	stderr bytes.Buffer
}

// startJob runs gorun with two copies of a shell script.
func startJob(t *testing.T, script string, flags ...string) *job {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	j := &job{t: t, cmd: exec.CommandContext(ctx, exe), came: make(map[string]int)}
	j.cmd.Args = append(append([]string{"gorun", "--nproc-per-node=2"}, flags...), "sh", "-c", script)
	j.cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", raceExitsAtOnce)
	j.cmd.Stderr = &j.stderr
	stdout, err := j.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	j.lines = bufio.NewScanner(stdout)
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return j
}

// expect reads lines until want has come from both workers. What one of them has written before it is expected counts, too: the other may be slow.
func (j *job) expect(want string) {
	j.t.Helper()
	for j.came[want] < 2 {
		if !j.lines.Scan() {
			err := j.cmd.Wait()
			j.t.Fatalf("gorun's output ends (%v) before %q came twice; stderr: %s", err, want, j.stderr.String())
		}
		if _, text, ok := strings.Cut(j.lines.Text(), "] "); ok {
			j.came[text]++
		}
	}
	j.came[want] -= 2
}

func (j *job) signal(sig syscall.Signal) {
	j.t.Helper()
	if err := j.cmd.Process.Signal(sig); err != nil {
		j.t.Fatal(err)
	}
}

// end waits for gorun, and wants this exit code and these words of its own on stderr, beside the answers to signals.
func (j *job) end(code int, stderr string) {
	j.t.Helper()
	for j.lines.Scan() {
	}
	err := j.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	if got := j.cmd.ProcessState.ExitCode(); got != code {
		j.t.Errorf("exit code %d, want %d", got, code)
	}
	var own strings.Builder // without the workers' lines
	for line := range strings.Lines(j.stderr.String()) {
		if _, answer, _ := strings.Cut(line, "[WARN]  gorun: signal "); !strings.HasPrefix(line, "[") && answer == "" {
			own.WriteString(line)
		}
	}
	if own.String() != stderr {
		j.t.Errorf("gorun says %q, want %q", own.String(), stderr)
	}
}

// forever is the rest of a worker that its traps end: a shell runs them between commands.
const forever = `echo ready; while :; do sleep 0.05; done`

func TestInterruptIsForwardedAsItIs(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) {
				t.Skipf("SIG%s is ignored by who started this test (nohup?), and so it stays", name)
			}
			j := startJob(t, `trap 'echo got `+name+`; exit 3' `+name+`; `+forever, "--max-restarts=5")
			j.expect("ready")
			j.signal(sig)
			j.expect("got " + name)
			j.end(128+int(sig), fmt.Sprintf("gorun: stopped by signal %d (SIG%s)\n", int(sig), name))
		})
	}
}

func TestInterruptIgnoredThenKilled(t *testing.T) {
	t.Parallel()
	j := startJob(t, `trap '' INT; `+forever, "--shutdown-timeout=0.2")
	j.expect("ready")
	j.signal(syscall.SIGINT)
	j.end(130, "gorun: stopped by signal 2 (SIGINT); 2 workers did not stop by themselves and were killed\n")
}

// decisionsApart is so long that two signals that end the job are two decisions.
const decisionsApart = 1100 * time.Millisecond

func TestSecondInterruptKills(t *testing.T) {
	t.Parallel()
	j := startJob(t, `trap 'echo no' INT; `+forever, "--shutdown-timeout=600")
	j.expect("ready")
	j.signal(syscall.SIGINT)
	time.Sleep(40 * time.Millisecond) // or the kernel makes them one
	j.signal(syscall.SIGINT)          // the same decision: nothing happens
	j.expect("no")
	time.Sleep(decisionsApart)
	j.signal(syscall.SIGTERM)
	j.end(130, "gorun: stopped by signal 2 (SIGINT); 2 workers did not stop by themselves and were killed\n")
	for _, want := range []string{
		"gorun: signal 2 (SIGINT): stopping 2 workers, and killing what has not ended in 10m0s. Another signal kills at once\n",
		"gorun: signal 15 (SIGTERM): killing 2 workers\n",
	} {
		if n := strings.Count(j.stderr.String(), want); n != 1 {
			t.Errorf("%q comes %d times in %q", want, n, j.stderr.String())
		}
	}
}

// TestTermTwiceIsOne: Slurm sends two within 40 ms when the time of a job is up. Workers still have their time.
func TestTermTwiceIsOne(t *testing.T) {
	t.Parallel()
	j := startJob(t, `trap 'sleep 0.2; echo saved; exit 0' TERM; `+forever)
	j.expect("ready")
	j.signal(syscall.SIGTERM)
	time.Sleep(40 * time.Millisecond) // or the kernel makes them one
	j.signal(syscall.SIGTERM)
	j.expect("saved")
	j.end(0, "")
}

// TestTermAfterTimeout: a manager's time may end soon after that of --timeout. Workers still have theirs.
func TestTermAfterTimeout(t *testing.T) {
	t.Parallel()
	j := startJob(t, `trap 'echo stopping; sleep 0.3; echo saved; exit 0' TERM; `+forever, "--timeout=4")
	j.expect("stopping")
	j.signal(syscall.SIGTERM)
	j.expect("saved")
	_ = j.cmd.Wait() // the exit code says all
	if code := j.cmd.ProcessState.ExitCode(); code != 124 {
		t.Errorf("exit code %d, stderr %q", code, j.stderr.String())
	}
	for _, want := range []string{"ended in 30s. SIGINT kills at once\n", "ended in 30s. Another signal kills at once\n"} {
		if n := strings.Count(j.stderr.String(), want); n != 1 {
			t.Errorf("%q comes %d times in %q", want, n, j.stderr.String())
		}
	}
}

// TestSignalsToTheEnd: whenever they come, the temporary files go, of which there are enough here to take some time.
func TestSignalsToTheEnd(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	j := startJob(t, `cd ${TORCHELASTIC_ERROR_FILE%/*} && seq 3000 | xargs mkdir; `+forever)
	j.expect("ready")
	var sender sync.WaitGroup
	sender.Go(func() {
		for j.cmd.Process.Signal(syscall.SIGTERM) == nil { // until it has been waited for
			time.Sleep(time.Millisecond)
		}
	})
	for j.lines.Scan() {
	}
	_ = j.cmd.Wait() // the exit code says all
	sender.Wait()
	if code := j.cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d, stderr %q", code, j.stderr.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v, stderr %q", left, err, j.stderr.String())
	}
}

func TestOtherSignalsReachTheWorkers(t *testing.T) {
	t.Parallel()
	j := startJob(t, `trap 'echo got it; exit 0' USR1; `+forever)
	j.expect("ready")
	arrived := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() { // workers may be ready before gorun knows that they are there, and until then it drops signals
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-arrived:
				tick.Stop()
				return
			case <-tick.C:
				_ = j.cmd.Process.Signal(syscall.SIGUSR1)
			}
		}
	})
	j.expect("got it")
	close(arrived)
	sender.Wait()
	j.end(0, "")
}

// TestSignalsToHandle: a signal on the list ends the job.
func TestSignalsToHandle(t *testing.T) {
	t.Parallel()
	j := startJob(t, `trap 'echo asked; exit 0' USR2; `+forever, "--signals-to-handle=SIGTERM,SIGUSR2")
	j.expect("ready")
	j.signal(syscall.SIGUSR2)
	j.expect("asked")
	j.end(0, "")

	j = startJob(t, forever, "--signals-to-handle=USR2")
	j.expect("ready")
	j.signal(syscall.SIGUSR2)
	j.end(128+int(syscall.SIGUSR2), "gorun: stopped by signal 12 (SIGUSR2)\n")
}

// TestInterruptedBuild: a signal ends the build of a Go program; the go command here is one that never ends.
func TestInterruptedBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "building")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go": "#!/bin/sh\necho yes >" + fifo + "\nexec sleep 600\n", "main.go": "package main",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args = []string{"gorun", filepath.Join(dir, "main.go")}
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(fifo); err != nil { // until the build runs
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code says all
	if code := cmd.ProcessState.ExitCode(); code != 143 || stderr.String() != "gorun: stopped by signal 15 (SIGTERM)\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "gorun-build-*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// TestNohup: a signal that was ignored when gorun started stays ignored.
func TestNohup(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	gorun := filepath.Join(t.TempDir(), "gorun")
	if err := os.Symlink(exe, gorun); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const askAgent = `agent=$(cut -d' ' -f4 /proc/$PPID/stat); sed -n 's/^SigCgt:.*\(.\)$/\1/p' /proc/$agent/status`
	for trap, caught := range map[string]bool{"trap '' HUP": false, ":": !signal.Ignored(syscall.SIGHUP)} {
		cmd := exec.CommandContext(ctx, "sh", "-c", trap+`; exec "$@"`, "sh", gorun, "sh", "-c", askAgent)
		out, err := cmd.Output()
		mask, numErr := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(string(out)), "[0] "), 16, 8)
		if err != nil || numErr != nil || (mask&1 == 1) != caught { // bit 0 is SIGHUP
			t.Errorf("after %q: the last digit of the caught signals is %q (%v), want SIGHUP among them: %t", trap, out, err, caught)
		}
	}
}
