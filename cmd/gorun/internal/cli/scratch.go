package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// scratch is this job's directory for what nobody asked to keep: the built program, and the workers' error files where
// there is no log directory. The guard removes it should gorun be killed.
type scratch struct{ dir string }

func newScratch(runID string) (scratch, error) {
	dir, err := os.MkdirTemp("", "gorun-"+strings.ReplaceAll(runID, string(filepath.Separator), "_")+"-*")
	if err == nil {
		dir, err = filepath.Abs(dir) // $TMPDIR may be relative, and workers may change their directory
	}
	return scratch{dir}, err
}

// close removes the directory. What workers have written of their failure stays, if keep says so: the summary names it.
func (s scratch) close(keep bool) error {
	if !keep {
		return os.RemoveAll(s.dir)
	}
	var dirs []string
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, path)
		case !strings.HasPrefix(d.Name(), "error"):
			return os.Remove(path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(dir) // fails if it is not empty
	}
	return err
}
