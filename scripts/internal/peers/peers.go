// Package peers is shared by the programs in scripts that compare gorun with other launchers and libraries.
package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Gorun builds gorun in dir, in the same way as a release.
func Gorun(dir string) (string, error) {
	path := filepath.Join(dir, "gorun")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/gorun/gorun/cmd/gorun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building gorun (run this in the repository): %w", err)
	}
	return path, nil
}

// Package builds the C library in dir, and lets programs in Python that are started from now on import gorun.
func Package(dir string) error {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(module)))
	build := exec.Command(filepath.Join(root, "scripts", "library"), dir)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the library for Python: %w", err)
	}
	return errors.Join(os.Setenv("PYTHONPATH", filepath.Join(root, "comm", "python")),
		os.Setenv("GORUN_LIBRARY", filepath.Join(dir, "lib", "libgorun.so.1")))
}

// python is the result of Python, so that it imports torch, which takes a second, only once; empty: none has been found.
var python string

// Python returns a Python with torch, or "".
func Python() string {
	for _, candidate := range []string{os.Getenv("PYTHON_EXEC"), "python3", "/usr/bin/python3"} {
		if python == "" && candidate != "" && exec.Command(candidate, "-c", "import torch.distributed.run").Run() == nil {
			python = candidate
		}
	}
	return python
}

// Command runs argv without the variables that would make a launcher print more.
func Command(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "LOGLEVEL=ERROR")
	return cmd
}
