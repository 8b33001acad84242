package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gorun/gorun/launcher"
)

// scratch is this job's directory for what nobody asked to keep: the built program, in a directory of its own, since
// it has the user's name; the timer file; and the workers' error files where there is no log directory. The guard removes it
// should gorun be killed.
type scratch struct{ dir string }

// bin is where the program is built.
func (s scratch) bin() string { return filepath.Join(s.dir, "bin") }

func newScratch(name string) (scratch, error) {
	dir, err := os.MkdirTemp("", "gorun-"+launcher.FileName(name)+"-*")
	if err == nil {
		dir, err = filepath.Abs(dir) // $TMPDIR may be relative, and workers may change their directory
	}
	if err != nil {
		return scratch{}, fmt.Errorf("no directory for temporary files ($TMPDIR chooses another): %w", err)
	}
	return scratch{dir}, nil
}

// removalTimeout is how long removing temporary files may take. Their file system may hang.
const removalTimeout = 5 * time.Second

// close removes the directory. What workers have written of their failure stays, if keep says so: the summary names it.
func (s scratch) close(keep bool) error {
	removed := make(chan error, 1)
	go func() { removed <- s.remove(keep) }()
	select {
	case err := <-removed:
		return err
	case <-time.After(removalTimeout):
		return fmt.Errorf("%s: no answer within %s", s.dir, removalTimeout)
	}
}

func (s scratch) remove(keep bool) error {
	if !keep {
		return os.RemoveAll(s.dir)
	}
	if err := os.RemoveAll(s.bin()); err != nil {
		return err
	}
	var dirs []string
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, path)
		case !strings.HasPrefix(d.Name(), "error") && !strings.HasPrefix(d.Name(), "flight"):
			return os.Remove(path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(dir) // fails if it is not empty
	}
	return err
}
