package launch

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newCopy returns a Copy of a file with the text "binary", and its path on the hosts.
func newCopy(t *testing.T) (c *Copy, path string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gorun")
	if err := os.WriteFile(file, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := NewCopy("v1", file)
	if err != nil {
		t.Fatal(err)
	}
	return c, c.Path
}

// TestCopyRemovesOldParts: the script removes the old partial files of copies that were interrupted, but not recent ones, which may be copies
// under way. Every login shell passes the script on to sh.
func TestCopyRemovesOldParts(t *testing.T) {
	c, path := newCopy(t)
	for _, name := range []string{"sh", "bash", "tcsh", "fish"} {
		shell, err := exec.LookPath(name)
		if err != nil {
			t.Logf("NOT TESTED: no %s here", name)
			continue
		}
		home := t.TempDir()
		other := filepath.Join(home, ".cache", "gorun", "v0-1")
		if err := os.MkdirAll(other, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"gorun", "gorun.h.1", "gorun.h.2"} {
			full := filepath.Join(other, f)
			if err := os.WriteFile(full, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if f == "gorun.h.2" {
				continue
			}
			if err := os.Chtimes(full, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(shell, "-c", c.command(time.Minute))
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		cmd.Stdin = strings.NewReader("binary")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "done\n") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		var left []string
		for _, f := range []string{"gorun", "gorun.h.1", "gorun.h.2"} {
			if _, err := os.Stat(filepath.Join(other, f)); err == nil {
				left = append(left, f)
			}
		}
		if got := strings.Join(left, " "); got != "gorun gorun.h.2" {
			t.Errorf("%s: %s is left", name, got)
		}
		if got, err := os.ReadFile(filepath.Join(home, strings.TrimPrefix(path, "~/"))); err != nil || string(got) != "binary" {
			t.Errorf("%s: copied %q, %v", name, got, err)
		}
	}
}

// TestCopyStalls: a host to which nothing comes any more ends the script, and keeps nothing of the copy.
func TestCopyStalls(t *testing.T) {
	c, path := newCopy(t)
	for sent, want := range map[string]string{"bin": "", "binary": "gorun"} {
		home := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.command(2*time.Second))
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := stdin.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		if want != "" {
			_ = stdin.Close()
		}
		_ = cmd.Wait() // the exit code says nothing
		if done := strings.HasSuffix(out.String(), "done\n"); done != (want != "") {
			t.Errorf("%s was sent: %s", sent, out.String())
		}
		if _, err := awaitWords(bufio.NewReader(strings.NewReader(out.String())), "done"); errors.Is(err, errStalled) != (want == "") {
			t.Errorf("%s was sent: %v from %s", sent, err, out.String())
		}
		var left []string
		files, err := filepath.Glob(filepath.Join(home, filepath.Dir(strings.TrimPrefix(path, "~/")), "*"))
		for _, f := range files {
			left = append(left, filepath.Base(f))
		}
		if err != nil || strings.Join(left, " ") != want {
			t.Errorf("%s was sent, and is left: %q (%v)", sent, left, err)
		}
	}
}

// TestCopyPlace: the binary is on the host's disk before it takes its place, if dd can do that, and a directory in its place is an error.
func TestCopyPlace(t *testing.T) {
	c, path := newCopy(t)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "dd"), []byte("#!/bin/sh\necho $* >$HOME/called\nls $HOME/.cache/gorun/*/ >>$HOME/called\necho unknown option >&2; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	run := func() string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.command(time.Minute))
		cmd.Env, cmd.Stdin = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH")}, strings.NewReader("binary")
		out, _ := cmd.CombinedOutput() // the exit code says nothing
		_, said, _ := strings.Cut(string(out), "\n")
		return said
	}
	there := filepath.Join(home, strings.TrimPrefix(path, "~/"))
	if err := os.MkdirAll(there, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := run(); got != "it is a directory: remove it\n" {
		t.Errorf("with a directory: %q", got)
	}
	if entries, err := os.ReadDir(there); err != nil || len(entries) > 0 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
	if err := os.Remove(there); err != nil {
		t.Fatal(err)
	}
	if got := run(); got != "done\n" {
		t.Errorf("with a dd that cannot do it: %q", got)
	}
	called, err := os.ReadFile(filepath.Join(home, "called"))
	lines := strings.Split(string(called), "\n")
	if err != nil || len(lines) != 3 || !strings.HasSuffix(lines[0], "/"+lines[1]+" conv=notrunc,fsync") || lines[1] == "gorun" {
		t.Errorf("dd was called so: %q, %v", called, err)
	}
}
