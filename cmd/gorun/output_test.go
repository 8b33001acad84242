package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// An unreadJob is a running gorun whose output nobody reads.
type unreadJob struct {
	t      *testing.T
	cmd    *exec.Cmd
	reader *os.File
	writer *os.File
	told   io.Reader // its stderr; nil: nobody reads that either
}

// startUnread runs gorun with two copies of a shell script, with stdout, and stderr as well, leading to a pipe.
func startUnread(t *testing.T, stderr bool, script string, flags ...string) *unreadJob {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := testkit.Pipe(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	j := &unreadJob{t: t, cmd: exec.CommandContext(ctx, exe), reader: reader, writer: writer}
	j.cmd.Args = append(append([]string{"gorun", "--nproc-per-node=2"}, flags...), "sh", "-c", script)
	j.cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", raceExitsAtOnce)
	j.cmd.Stdout = writer
	if stderr {
		j.cmd.Stderr = writer
	} else if j.told, err = j.cmd.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return j
}

// awaitFull waits until the pipe has no room. How much gorun takes from a worker until then depends on the sizes of its reads.
func (j *unreadJob) awaitFull() {
	j.t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(j.writer.Fd()), Events: unix.POLLOUT}}, 0)
		if err == nil && n == 0 {
			return
		}
		if time.Since(begun) > patience {
			j.t.Fatal("the pipe is not full")
		}
	}
}

// end wants gorun to end with an exit code, soon, and returns what it has said.
func (j *unreadJob) end(code int) (told string) {
	j.t.Helper()
	begun := time.Now()
	if j.told != nil {
		text, err := io.ReadAll(j.told)
		if told = string(text); err != nil {
			j.t.Error(err)
		}
	}
	_ = j.cmd.Wait() // the exit code says all
	if got := j.cmd.ProcessState.ExitCode(); got != code {
		j.t.Errorf("exit code %d, want %d; stderr %q", got, code, told)
	}
	if took := time.Since(begun); took > patience {
		j.t.Errorf("it took %v to end", took)
	}
	return told
}

// awaitFile waits for a file that workers make: they have no other way to tell.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("there is no %s", path)
		}
	}
}

// TestFailureBehindABlockedConsole: rank 0 floods a pipe that nobody reads, and rank 1 fails.
func TestFailureBehindABlockedConsole(t *testing.T) {
	testkit.Nightly(t, "it takes ten seconds")
	t.Parallel()
	for _, stderr := range []bool{false, true} {
		full := filepath.Join(t.TempDir(), "full")
		j := startUnread(t, stderr, `[ $RANK = 0 ] && exec yes; until [ -e `+full+` ]; do sleep 0.01; done; exit 3`)
		j.awaitFull()
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if told := j.end(3); !stderr && !strings.Contains(told, "\ngorun: stdout: nobody reads it: up to ") {
			t.Errorf("gorun says %q", told)
		}
	}
}

// TestInterruptsBehindABlockedConsole: the first signal reaches the workers, the second one kills, and gorun ends. The shell itself does not
// write to the blocked stderr: it would say there that a signal ended its sleep.
func TestInterruptsBehindABlockedConsole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := startUnread(t, true, `cd `+dir+`; trap 'touch asked.$RANK' TERM; touch ready.$RANK; yes & yes >&2 & exec 2>/dev/null; while :; do sleep 0.05; done`, "--shutdown-timeout=600")
	for _, next := range []struct {
		name string
		sig  syscall.Signal
	}{{"ready", syscall.SIGTERM}, {"asked", syscall.SIGINT}} {
		for _, rank := range []string{".0", ".1"} {
			awaitFile(t, filepath.Join(dir, next.name+rank))
		}
		if next.name == "asked" {
			time.Sleep(decisionsApart)
		}
		if err := j.cmd.Process.Signal(next.sig); err != nil {
			t.Fatal(err)
		}
	}
	j.end(128 + int(syscall.SIGTERM))
}

// TestReaderGoesAway: workers get their SIGTERM and their time, and the exit code is that of SIGPIPE.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	for _, stderr := range []bool{false, true} {
		dir := t.TempDir()
		j := startUnread(t, stderr, `cd `+dir+`; trap 'sleep 0.2; touch saved.$RANK; exit 0' TERM; while echo line; do sleep 0.01; done; while :; do sleep 0.01; done`)
		seen := map[string]bool{}
		for lines := bufio.NewScanner(j.reader); len(seen) < 2 && lines.Scan(); {
			seen[lines.Text()] = true
		}
		_ = j.reader.Close()
		told := j.end(128 + int(syscall.SIGPIPE))
		for _, name := range []string{"saved.0", "saved.1"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("a worker did not have its time: %v", err)
			}
		}
		if want := "\ngorun: stopped: nobody reads the output any more (SIGPIPE)\n"; !stderr && strings.Count("\n"+told, want) != 1 {
			t.Errorf("gorun says %q, want %q once", told, want)
		}
	}
}

// TestSuccessWithoutAReader: a job whose output has not been written is no success. What gorun waits for is told, and a
// signal ends the wait.
func TestSuccessWithoutAReader(t *testing.T) {
	t.Parallel()
	j := startUnread(t, false, `yes | head -c 60000`)
	told := bufio.NewReader(j.told)
	for _, want := range []string{
		"gorun: the job has ended; waiting until its output has been read, at most 30s without progress; a signal ends the wait\n",
		"gorun: stdout: nobody reads it: up to ",
	} {
		line, err := told.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("gorun says %q (%v), want %q", line, err, want)
		}
		_ = j.cmd.Process.Signal(syscall.SIGTERM) // it may have ended after the last line
	}
	j.end(1)
}
