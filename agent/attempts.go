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

// What workers leave in an attempt is in a directory of it: among the logs of the job, which are the user's, or else in Config.ErrorDir.

// workerFiles are the names of the files that a worker leaves about its failure, without .json.
var workerFiles = []string{"error", "flight"}

// prepareAttempt creates the directories for the error files of a gang. Files that workers of earlier gangs have left there must not be
// taken for those of this one: among logs, they are renamed to error.<n>.json, with n from 1; elsewhere, they are removed.
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

// removeAttempts removes what workers have left in the attempts before one, unless it is among logs. What they were doing when one hung
// stays.
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
			errs = append(errs, hang.Prune(filepath.Join(c.ErrorDir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
