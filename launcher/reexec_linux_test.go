package launcher

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/launcher/spool"
)

// asAgent makes this test binary an agent.
const asAgent = "LAUNCHER_TEST_AGENT"

// agent runs one worker, which says what its parent is, and exits as that does.
func agent() int {
	console := spool.New()
	gang, err := Start(context.Background(), Spec{
		Argv: []string{"/bin/sh", "-c", "read parent </proc/$PPID/comm; echo a worker of $parent"}, Workers: make([]WorkerSpec, 1),
		Grace: patience, Stdout: os.Stdout, Spool: console, Stderr: os.Stderr, Warn: func(text string) { fmt.Fprintln(os.Stderr, text) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := 1
	for exit := range gang.Exits() {
		code = exit.Code()
	}
	console.Drain(spool.Timeouts{Still: patience, Total: patience}, nil)
	return code
}

// TestReexec: an agent's binary is its guard, whatever the binary is called, and where coverage is measured.
func TestReexec(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"plain": nil, "coverage": {"-cover", "-coverpkg=github.com/gorun/gorun/launcher/..."}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := build(t, flags)
			dir := t.TempDir()
			for _, name := range []string{"gorun", "launch", "gorun-worker", "-"} {
				path := filepath.Join(dir, name)
				if err := os.Link(binary, path); err != nil {
					t.Fatal(err)
				}
				for _, argv0 := range []string{path, name, "gorun"} {
					check(t, path, argv0)
				}
			}
			link := filepath.Join(dir, "link")
			if err := os.Symlink(binary, link); err != nil {
				t.Fatal(err)
			}
			check(t, link, link)
		})
	}
}

// build builds this test.
func build(t *testing.T, flags []string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "agent")
	args := append([]string{"test", "-c", "-o", binary}, flags...)
	if out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// check runs an agent, under a name that it is told.
func check(t *testing.T, path, argv0 string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Stderr = []string{argv0}, &stderr
	cmd.Env = append(os.Environ(), asAgent+"=yes", "GOCOVERDIR="+t.TempDir())
	out, err := cmd.Output()
	if err != nil || string(out) != "a worker of guard\n" || stderr.Len() > 0 {
		t.Errorf("%s, called %s: %v\n%s%s", path, argv0, err, out, stderr.String())
	}
}
