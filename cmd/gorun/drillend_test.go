package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// fails: a drill that does not hold is told of, and what the agents have said is kept.
func (d driller) fails(t *testing.T) {
	c, stderr, temp := d.command(t, "--timeout=1ms", "--on-failure=restart", "agent-kill")
	out, _ := c.Output()
	if code := c.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	want := regexp.MustCompile(`(?m)^agent-kill +restart +- +- +- +- +NO +none$(?s:.*)^agent-kill, restart: NO: .*: not finished within 1ms: no worker has started$`)
	if !want.Match(out) {
		t.Errorf("the table is\n%s", out)
	}
	logs := regexp.MustCompile(`(?m)^agent-kill, restart: logs are in (.*)$`).FindSubmatch(stderr.Bytes())
	if logs == nil || !strings.Contains(stderr.String(), "\n  etcd0.log:\n    ") || !strings.HasSuffix(stderr.String(), "\ngorun: 1 of 1 drills did not hold\n") {
		t.Fatalf("stderr is\n%s", stderr)
	}
	if _, err := os.Stat(filepath.Join(string(logs[1]), "etcd0.log")); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(temp, filepath.Base(filepath.Dir(string(logs[1]))))); err != nil {
		t.Error(err)
	}
}

// interrupted: nothing is left, not even of an agent that is suspended, and the table has the scenarios before.
func (d driller) interrupted(t *testing.T) {
	c, _, _ := d.command(t, "-v", "--on-failure=replace", "worker-kill", "agent-stop")
	out := new(bytes.Buffer)
	c.Stdout = out
	d.end(t, c, syscall.SIGTERM)
	if !regexp.MustCompile(`(?m)^worker-kill +replace .* yes +none$`).Match(out.Bytes()) || bytes.Contains(out.Bytes(), []byte("agent-stop")) {
		t.Errorf("the table is\n%s", out)
	}
	if code := c.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d, want %d", code, 128+int(syscall.SIGTERM))
	}
}

// killed: no process is left, and no file.
func (d driller) killed(t *testing.T) {
	testkit.Nightly(t, "other drills end in the same way")
	c, _, temp := d.command(t, "-v", "--on-failure=replace", "agent-stop")
	d.end(t, c, syscall.SIGKILL)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // nobody tells
		left, err := os.ReadDir(temp)
		if err == nil && len(left) == 0 && len(processesOf(t, temp)) == 0 {
			return
		}
	}
}

// end runs a drill that suspends an agent, and then ends the drill by a signal.
func (d driller) end(t *testing.T, c *exec.Cmd, sig syscall.Signal) {
	t.Helper()
	c.Stderr = nil
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	suspended := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if text := lines.Text(); strings.HasPrefix(text, "agent-stop") && strings.Contains(text, " computing again") { // the step after the signal
			suspended = true
			if err := c.Process.Signal(sig); err != nil {
				t.Error(err)
			}
		}
	}
	if err := c.Wait(); err == nil || !suspended {
		t.Errorf("the drill has not been ended: %v", err)
	}
}
