package hang

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestPrune: only files of Collect, and those that are to be kept, stay. Empty directories are removed.
func TestPrune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "job")
	files := map[string]bool{ // whether they stay
		"attempt_0/0/stacks.txt":  true,
		"attempt_0/flights.txt":   true,
		"attempt_0/1/error.json":  false,
		"attempt_1/0/flight.json": true,
		"attempt_1/0/output":      false,
		"attempt_2/0/core":        false,
		"timer":                   false,
	}
	for name := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("nowhere", filepath.Join(dir, "link")), Prune(dir, func() {}, "flight.")); err != nil {
		t.Error(err)
	}
	files["link"], files["attempt_2"], files["attempt_0/1"] = false, false, false
	for name, stays := range files {
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) == stays {
			t.Errorf("%s: %v, want it to stay: %t", name, err, stays)
		}
	}
	for _, name := range []string{"attempt_0/0/stacks.txt", "attempt_0/flights.txt", "attempt_1/0/flight.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := Prune(dir, func() {}); err != nil {
		t.Error(err)
	}
	if err := Prune(dir, func() {}); err != nil { // there is nothing any more
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory has no files, and stays: %v", err)
	}
}

// TestPruneGoesOn: if a file cannot be removed, the others are.
func TestPruneGoesOn(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can remove everything")
	}
	dir := t.TempDir()
	closed := filepath.Join(dir, "a")
	for _, name := range []string{"a/file", "b/file"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(closed, 0o700) }()
	if err := Prune(dir, func() {}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what comes later stays: %v", err)
	}
}
