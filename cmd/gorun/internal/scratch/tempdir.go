package scratch

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/gorun/gorun/agent"
)

// ChooseTempDir sets $TMPDIR of this process to the first directory of tempDirs that can be used, if the one that Go
// would use cannot: clusters set TMPDIR for all nodes, and some of them lack it. Workers get it as it was.
func ChooseTempDir(logger *slog.Logger) {
	first := os.TempDir()
	why := tryTempDir(first)
	if why == nil {
		return
	}
	for _, dir := range tempDirs() {
		if tryTempDir(dir) == nil && os.Setenv("TMPDIR", dir) == nil {
			logger.Warn(fmt.Sprintf("$TMPDIR, %s, cannot be used on this node (%v): temporary files of gorun are in %s", first, why, dir))
			return
		}
	}
}

// tempDirs are those that Python's tempfile tries.
func tempDirs() (dirs []string) {
	for _, name := range []string{"TMPDIR", "TEMP", "TMP"} {
		if dir := os.Getenv(name); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	dirs = append(dirs, "/tmp", "/var/tmp")
	if here, err := os.Getwd(); err == nil {
		dirs = append(dirs, here)
	}
	return dirs
}

func tryTempDir(dir string) error {
	made, err := os.MkdirTemp(dir, prefix+"*")
	if err == nil {
		err = os.Remove(made)
	}
	return agent.Bare(err)
}
