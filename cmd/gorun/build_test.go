package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// buildGorun returns a gorun that is built as a release is: static and without the race detector. The gorun of other tests is the test
// binary, which starts more slowly.
func buildGorun(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gorun")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}
