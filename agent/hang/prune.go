package hang

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Prune removes what is in a directory, and the directory if nothing stays in it. What Collect has written stays, because the log names
// these files, and so do files whose names begin with one of keep.
func Prune(dir string, keep ...string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // somebody else has removed it
			return nil
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, path)
			return nil
		case d.Name() == StacksFile, d.Name() == FlightsFile,
			slices.ContainsFunc(keep, func(prefix string) bool { return strings.HasPrefix(d.Name(), prefix) }):
			return nil
		}
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(dir) // fails if it is not empty
	}
	return err
}
