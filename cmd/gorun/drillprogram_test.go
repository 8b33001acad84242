package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// program: the user's own is judged by its exit code, the restarts and its lines.
func (d driller) program(t *testing.T) {
	c, stderr, _ := d.command(t, "--on-failure=restart", "--after=1ms", "--nodes=2", "worker-kill", "worker-oom", "scale-down",
		"--", "sh", "-c", "for i in $(seq 50); do echo step $i; sleep 0.1; done")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	want := []string{
		`^worker-kill +restart +SIGKILL to a worker of node 1 +[0-9]+ ms +[0-9]+ ms +[0-9]+ ms +yes +none$`,
		`^worker-oom +restart +- +- +- +- +skipped +-$`,
		`^worker-oom, restart: skipped: only the built-in program does what this needs$`,
		`^scale-down +restart +SIGTERM to the agent of node 1 +[0-9]+ ms +[0-9]+ ms +[0-9]+ ms +yes +none$`,
	}
	for _, line := range want {
		if !regexp.MustCompile("(?m)" + line).Match(out) {
			t.Errorf("the table is\n%swhere a line is to be %s\n%s", out, line, stderr)
		}
	}
	if text := stderr.String(); !strings.Contains(text, "worker-kill, restart: of 3 workers that the fault did not hit, 0 have lived on") {
		t.Errorf("stderr is\n%s", stderr)
	}
}

// survivors: a program that takes part in --on-failure=replace.
func (d driller) survivors(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		testkit.Cannot(t, "%v", err)
	}
	c, stderr, _ := d.command(t, "--on-failure=replace", "worker-kill", "--", "python3", filepath.Join("testdata", "drill", "stays.py"))
	out, err := c.Output()
	if err != nil || !regexp.MustCompile(`(?m)^worker-kill +replace .* yes +none$`).Match(out) {
		t.Errorf("%v, the table is\n%s\n%s", err, out, stderr)
	}
	if !strings.Contains(stderr.String(), "worker-kill, replace: of 5 workers that the fault did not hit, 5 have lived on") {
		t.Errorf("stderr is\n%s", stderr)
	}
}

// slowEnd: when the job has failed, the drill lets the workers of other nodes end as they do without a drill. The drill may kill either rank,
// as the node that joins first has rank 0. That rank fails in each later life, once the other one has begun it, which prints nothing then.
func (d driller) slowEnd(t *testing.T) {
	testkit.Nightly(t, "one drill with a program shows most")
	dir := t.TempDir()
	const script = `life=$TORCHELASTIC_RESTART_COUNT other=$((1 - RANK))
if test $life != 0 && test ! -e ended$RANK; then until tail -1 begun$other | grep -q $life; do sleep 0.1; done; exit 7; fi
trap 'sleep 1; echo $life >>ended$RANK; exit 0' TERM
echo $life >>begun$RANK
until test -e begun$other; do sleep 0.1; done
for i in $(seq 1000); do test $life != 0 || echo step; sleep 0.1; done`
	c, stderr, temp := d.command(t, "--on-failure=restart", "--after=1ms", "--nodes=2", "--nproc-per-node=1", "--timeout=30s", "worker-kill", "--", "bash", "-c", script)
	c.Dir = dir
	out, _ := c.Output()
	if code := c.ProcessState.ExitCode(); code != 1 || !regexp.MustCompile(`(?m)^worker-kill .* NO +none$`).Match(out) {
		t.Errorf("exit code %d, the table is\n%s\n%s", code, out, stderr)
	}
	var lives []string
	for _, rank := range []string{"0", "1"} {
		begun, _ := os.ReadFile(filepath.Join(dir, "begun"+rank))
		ended, _ := os.ReadFile(filepath.Join(dir, "ended"+rank)) // the rank that was killed has none
		lives = append(lives, fmt.Sprintf("begun %q, ended by itself %q", begun, ended))
	}
	slices.Sort(lives)
	if want := []string{`begun "0\n", ended by itself ""`, `begun "0\n1\n2\n3\n", ended by itself "0\n1\n2\n3\n"`}; !slices.Equal(lives, want) {
		t.Errorf("the lives of the ranks are %q, want %q\n%s", lives, want, stderr)
	}
	empty(t, temp)
}

// empty removes logs that are kept, so that the check of the command finds nothing.
func empty(t *testing.T, temp string) {
	t.Helper()
	if err := os.RemoveAll(temp); err != nil {
		t.Error(err)
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Error(err)
	}
}
