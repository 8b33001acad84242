package cli

import (
	"os"
	"path/filepath"
)

// enterWorkDir makes the directory of --wdir that of this process, and so of all that it starts. As with mpirun and env -C, a relative
// path to the program then begins there.
func (o *options) enterWorkDir() error {
	if o.workDir == "" {
		return nil
	}
	dir, err := filepath.Abs(o.workDir)
	if err != nil {
		return err
	}
	if o.startDir, err = os.Getwd(); err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return usagef("%s: %w", o.given["wdir"], cause(err))
	}
	o.workDir = dir
	return os.Setenv("PWD", dir) // which workers inherit
}

// path returns the path that a file of gorun's own has now: other flags than --wdir mean files where gorun was started.
func (o *options) path(file string) string {
	if file == "" || o.startDir == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(o.startDir, file)
}
