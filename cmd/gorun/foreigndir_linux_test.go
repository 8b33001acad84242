package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// forEveryUser returns a gorun that every user can run.
func forEveryUser(t *testing.T) string {
	t.Helper()
	exe, err := exec.LookPath("gorun")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	exe = filepath.Join(dir, "gorun")
	if err := os.WriteFile(exe, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return exe
}

// TestForeignDirectory: if the directory of a user's sockets belongs to somebody else, a job runs without a socket, and says so; commands
// that look for jobs say so, too, and not that there are none.
func TestForeignDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		testkit.Cannot(t, "only root can become another user")
	}
	const user = 640321
	foreign := fmt.Sprintf("/tmp/gorun-%d", user)
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(foreign) })
	exe := forEveryUser(t)
	problem := foreign + " belongs to another user: have it removed, or set XDG_RUNTIME_DIR to a directory of yours, for jobs and for the commands about them"
	for line, want := range map[string]string{
		"ps":                   "gorun ps: jobs on this machine cannot be found: " + problem + "\n",
		"ps --json":            "gorun ps: jobs on this machine cannot be found: " + problem + "\n",
		"status":               "gorun status: jobs on this machine cannot be found: " + problem + "\n",
		"stop 17":              "gorun stop: jobs on this machine cannot be found: " + problem + "\n",
		"--no-python sleep .5": "gorun: gorun status will not find this job: it has no socket: " + problem + "\n",
	} {
		cmd := exec.Command(exe, strings.Fields(line)...)
		cmd.Dir, cmd.Env = "/", []string{"HOME=/nonexistent", "PATH=" + os.Getenv("PATH"), "OMP_NUM_THREADS=1", raceExitsAtOnce}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		out, err := cmd.CombinedOutput()
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		isJob := strings.HasPrefix(line, "--")
		if isJob && (code != 0 || !strings.Contains(string(out), problem)) || !isJob && (code != 2 || string(out) != want) {
			t.Errorf("gorun %s: exit code %d\n got %q\nwant %q", line, code, out, want)
		}
	}
}
