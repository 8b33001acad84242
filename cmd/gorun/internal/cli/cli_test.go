package cli

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

func TestCountGPUs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "null"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := countGPUs(dir); n != 3 {
		t.Errorf("%d GPUs, want 3", n)
	}
	if n := countGPUs(t.TempDir()); n != 0 {
		t.Errorf("%d GPUs in an empty directory", n)
	}
}

func TestExitCode(t *testing.T) {
	failed := &agent.WorkerError{Root: launcher.Exit{Code: 139, Signal: syscall.SIGSEGV}}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{failed, 139},
		{&agent.WorkerError{Root: launcher.Exit{Code: agent.NoRestart}}, 93},
		{&agent.InterruptError{Signal: syscall.SIGTERM}, 143},
		{usagef("no"), 2},
		{&launcher.BuildError{}, 2},
		{&launcher.NotExecutableError{}, 126},
		{&launcher.NotFoundError{}, 127},
		{&agent.StartError{Err: &launcher.NotFoundError{}}, 127},
		{&agent.StartError{Err: &launcher.PortError{Port: 29500, Err: syscall.EADDRINUSE}}, 2},
		{&agent.StartError{Err: &launcher.PortError{Err: syscall.EADDRINUSE}}, 75},
		{&agent.StartError{Err: rendezvous.ErrClosed}, 75},
		{errors.New("unforeseen"), 1},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%T %v: exit code %d, want %d", c.err, c.err, got, c.want)
		}
	}
}

func TestExplain(t *testing.T) {
	if got := explain(errors.Join(errors.New("one"), errors.New("two"))); got != "gorun: one; two\n" {
		t.Errorf("got %q", got)
	}
	failed := &agent.WorkerError{Program: "train.py"}
	if got := explain(failed); got != failed.Summary() {
		t.Errorf("got %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"nprocs", "nproc", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	word := rapid.StringMatching(`[a-c]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab, ba, bc, ac := distance(a, b), distance(b, a), distance(b, c), distance(a, c)
		if ab != ba || (ab == 0) != (a == b) || ac > ab+bc {
			t.Fatalf("not a distance: %q %q %q: %d %d %d %d", a, b, c, ab, ba, bc, ac)
		}
	})
}
