package scratch

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
		ChooseTempDir(testkit.LogLines(&said, slog.LevelInfo))
		if got := os.TempDir(); got != c.want || !strings.Contains(said.String(), c.why) || (said.Len() == 0) != (c.why == "") {
			t.Errorf("TMPDIR=%s TEMP=%s: %s, and says %s; want %s, and %s", c.tmpdir, c.temp, got, said.String(), c.want, c.why)
		}
	}
}

// TestAbandoned: what is left of a job whose processes were all killed goes when the next one ends, and nothing else does.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	create := func(name string) *Dir {
		s, err := New(name, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Path, "error"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return s
	}
	running, failed, killed, last := create("running"), create("failed"), create("killed"), create("last")
	mine, elsewhere, part := filepath.Join(dir, prefix+"mine"), create("elsewhere"), create("part")
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	_ = elsewhere.lock.Close() // as it looks from here, if the file system keeps locks within each machine
	if err := os.Rename(elsewhere.lockPath, filepath.Join(elsewhere.Path, lockPrefix+"0b5f9d39-4d2c-4d4f-a0f1-51d3d1b5c1d0")); err != nil {
		t.Fatal(err)
	}
	stuck := filepath.Join(part.Path, "stuck")
	if err := errors.Join(os.MkdirAll(filepath.Join(stuck, "of"), 0o700), os.Chmod(stuck, 0o500)); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(stuck, 0o700) }) //nolint:gosec // a directory
	_ = part.lock.Close()
	if err := failed.Close(true); err != nil {
		t.Fatal(err)
	}
	_ = killed.lock.Close() // as the kernel does
	if err := last.Close(false); err != nil {
		t.Fatal(err)
	}
	for path, there := range map[string]bool{running.Path: true, elsewhere.Path: true, failed.Path: true, killed.Path: false, last.Path: false, mine: true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(part.lockPath); err != nil && os.Getuid() != 0 { // root can remove all of it
		t.Error("what is left of a removal has no lock for the next gorun:", err)
	}
	if err := running.Close(false); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, keep := range []bool{false, true} {
		s, err := New("a/b", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		report := filepath.Join(s.Path, "attempt_0", "1", "error.json")
		for _, name := range []string{report, filepath.Join(s.Path, "train"), filepath.Join(s.Path, "attempt_1", "0", "none")} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(keep); err != nil {
			t.Fatal(err)
		}
		var left []string
		_ = filepath.WalkDir(os.Getenv("TMPDIR"), func(path string, d fs.DirEntry, _ error) error {
			if !d.IsDir() {
				left = append(left, path)
			}
			return nil
		})
		if keep && !slices.Equal(left, []string{report}) || !keep && left != nil {
			t.Errorf("keep %t: left are %q", keep, left)
		}
	}
}
