package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCopyRemovesOldParts: the script removes the old partial files of copies that were interrupted, but not recent ones, which may be copies
// under way. Every login shell passes the script on to sh.
func TestCopyRemovesOldParts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gorun")
	if err := os.WriteFile(file, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &Copy{Version: "v1", File: file}
	path, err := c.Path()
	if err != nil {
		t.Fatal(err)
	}
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
		cmd := exec.Command(shell, "-c", c.command(path, time.Minute))
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
	file := filepath.Join(t.TempDir(), "gorun")
	if err := os.WriteFile(file, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &Copy{Version: "v1", File: file}
	path, err := c.Path()
	if err != nil {
		t.Fatal(err)
	}
	for sent, want := range map[string]string{"bin": "", "binary": "gorun"} {
		home := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.command(path, 2*time.Second))
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
