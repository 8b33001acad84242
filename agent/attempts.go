package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/launcher"
)

// Every attempt has a directory for the files that its workers write. It is in the user's log directory, or else in Config.ErrorDir.

// workerFiles are the names of the files in which a worker says why it failed, without .json.
var workerFiles = []string{"error", "flight"}

// prepareAttempt creates the directories for the error files of a gang. Nobody may take files of earlier gangs for files of this one. So
// prepareAttempt renames those in a log directory to error.<n>.json, with n from 1, and removes those in Config.ErrorDir.
func prepareAttempt(c Config, restarts, nproc int) error {
	for local := range nproc {
		path := errorFile(c, restarts, local)
		if path == "" {
			return nil
		}
		dir := filepath.Dir(path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, name := range workerFiles {
			if err := putAside(c, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func putAside(c Config, name string) error {
	path := name + ".json"
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if c.Spec.Logs.Dir == "" {
		return os.RemoveAll(path)
	}
	for n := 1; ; n++ {
		aside := name + "." + strconv.Itoa(n) + ".json"
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(path, aside)
		} else if err != nil {
			return err
		}
	}
}

// removeAttempts removes what workers wrote in earlier attempts, unless it is in a log directory. It keeps the files that say what they were
// doing when one of them hung.
func removeAttempts(c Config, before int) error {
	if c.Spec.Logs.Dir != "" || c.ErrorDir == "" {
		return nil
	}
	entries, err := os.ReadDir(c.ErrorDir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if attempt, ok := launcher.AttemptOf(e.Name()); ok && attempt < before {
			errs = append(errs, hang.Prune(filepath.Join(c.ErrorDir, e.Name()), func() {}))
		}
	}
	return errors.Join(errs...)
}

// removeStacks removes what CommandStacks has written, unless it is in a log directory, or the log names it because a worker hung.
func (l *loop) removeStacks() {
	if l.Spec.Logs.Dir != "" {
		return
	}
	err, inTime := within(errorFileTimeout, func() (err error) {
		for dir, named := range l.stacks {
			if dir != "" && !named {
				err = errors.Join(err, os.RemoveAll(dir))
			}
		}
		return err
	})
	switch {
	case !inTime:
		l.Logger.Warn("cannot remove temporary files", "error", "no answer within "+errorFileTimeout.String())
	case err != nil:
		l.Logger.Warn("cannot remove temporary files", "error", err)
	}
}
