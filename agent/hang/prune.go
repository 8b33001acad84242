package hang

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Prune removes what is in a directory, and then the directory if it is empty. It keeps the files that Collect wrote, because the log names
// them, and files whose names begin with one of keep. It calls seen for each file and directory. If it cannot remove a file, it goes on with
// the next one, and the error says so.
func Prune(dir string, seen func(), keep ...string) error {
	var dirs []string
	var errs []error
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // which returns no error
		seen()
		switch {
		case err != nil:
		case d.IsDir():
			dirs = append(dirs, path)
		case d.Name() == StacksFile, d.Name() == FlightsFile,
			slices.ContainsFunc(keep, func(prefix string) bool { return strings.HasPrefix(d.Name(), prefix) }):
		default:
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // somebody else may have removed it
			errs = append(errs, err)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		seen()
		_ = os.Remove(dir) // fails if it is not empty
	}
	return errors.Join(errs...)
}
