package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Gorun puts a gorun into a folder, as a release has it: static, and without the race detector. It is the one that
// scripts/check has built for all tests, or else one that it builds. The gorun of a test binary starts more slowly.
func Gorun(dir string) (path string, err error) {
	path = filepath.Join(dir, "gorun")
	if built := os.Getenv("TESTKIT_GORUN"); built != "" {
		return path, os.Symlink(built, path)
	}
	// Nobody debugs it, and linking is faster without the tables for that.
	build := exec.Command("go", "build", "-ldflags=-w", "-buildvcs=false", "-o", path, "github.com/gorun/gorun/cmd/gorun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build gorun: %w\n%s", err, out)
	}
	return path, nil
}
