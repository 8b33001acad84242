package cli

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestTempDir: what is not there on this node is no obstacle, as for Python, and is told.
func TestTempDir(t *testing.T) {
	here := t.TempDir()
	missing, file := filepath.Join(here, "missing"), filepath.Join(here, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tmpdir, temp, want, why string }{
		{here, missing, here, ""},
		{missing, here, here, missing + ", cannot be used on this node (no such file or directory): temporary files of gorun are in " + here},
		{file, here, here, file + ", cannot be used on this node (not a directory)"},
		{missing, file, "/tmp", "temporary files of gorun are in /tmp"},
	} {
		t.Setenv("TMPDIR", c.tmpdir)
		t.Setenv("TEMP", c.temp)
		var said strings.Builder
		chooseTempDir(testkit.LogLines(&said, slog.LevelInfo))
		if got := os.TempDir(); got != c.want || !strings.Contains(said.String(), c.why) || (said.Len() == 0) != (c.why == "") {
			t.Errorf("TMPDIR=%s TEMP=%s: %s, and says %s; want %s, and %s", c.tmpdir, c.temp, got, said.String(), c.want, c.why)
		}
	}
}

// TestAbandoned: what is left of a job whose processes were all killed goes when the next one ends, and nothing else does.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	make := func(name string) *scratch {
		s, err := newScratch(name, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "error"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return s
	}
	running, failed, killed, last := make("running"), make("failed"), make("killed"), make("last")
	mine, elsewhere, part := filepath.Join(dir, scratchPrefix+"mine"), make("elsewhere"), make("part")
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	_ = elsewhere.lock.Close() // as it looks from here, if the file system keeps locks within each machine
	if err := os.Rename(elsewhere.lockPath, filepath.Join(elsewhere.dir, lockPrefix+"0b5f9d39-4d2c-4d4f-a0f1-51d3d1b5c1d0")); err != nil {
		t.Fatal(err)
	}
	stuck := filepath.Join(part.dir, "stuck")
	if err := errors.Join(os.MkdirAll(filepath.Join(stuck, "of"), 0o700), os.Chmod(stuck, 0o500)); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(stuck, 0o700) }) //nolint:gosec // a directory
	_ = part.lock.Close()
	if err := failed.close(true); err != nil {
		t.Fatal(err)
	}
	_ = killed.lock.Close() // as the kernel does
	if err := last.close(false); err != nil {
		t.Fatal(err)
	}
	for path, there := range map[string]bool{running.dir: true, elsewhere.dir: true, failed.dir: true, killed.dir: false, last.dir: false, mine: true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(part.lockPath); err != nil && os.Getuid() != 0 { // root can remove all of it
		t.Error("what is left of a removal has no lock for the next gorun:", err)
	}
	if err := running.close(false); err != nil {
		t.Error(err)
	}
}
