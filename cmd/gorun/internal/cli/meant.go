package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gorun/gorun/launcher"
)

// suggestProgram adds to the error for a missing program what may have been meant: a command of gorun, or a file beside it.
func suggestProgram(err error) error {
	missing, ok := errors.AsType[*launcher.NotFoundError](err)
	if !ok || strings.Contains(missing.Hint, "did you mean") || strings.Contains(missing.Hint, "write ./") {
		return err
	}
	meant := meantBy(missing.Path)
	if meant == "" {
		return err
	}
	hint := "did you mean " + meant + "?"
	if missing.Hint != "" {
		hint = missing.Hint + "; " + hint
	}
	return &launcher.NotFoundError{Path: missing.Path, Hint: hint}
}

// filesSeen is how many files of a folder are looked at.
const filesSeen = 1000

// meantBy returns what to write for the command, or for the file in the same folder and with the same ending, whose name is nearest to that of
// path; empty: none is near.
func meantBy(path string) string {
	folder, name := filepath.Split(path)
	var files, commands []string
	if f, err := os.Open(filepath.Clean(folder)); err == nil {
		files, _ = f.Readdirnames(filesSeen) // what can be read
		_ = f.Close()                        // it was only read
	}
	files = slices.DeleteFunc(files, func(n string) bool { return filepath.Ext(n) != filepath.Ext(name) })
	slices.Sort(files)
	if folder == "" {
		commands = commandNames()
	}
	near := nearest(name, slices.Concat(commands, files))
	switch {
	case near == "":
		return ""
	case slices.Contains(commands, near):
		return "gorun " + near
	case folder == "" && filepath.Ext(near) == "":
		return quote("./" + near)
	default:
		return quote(folder + near)
	}
}

// launchers are programs with flags of the same names: behind one of them, such a flag may be its own.
var launchers = []string{"gorun", "torchrun", "accelerate"}

// misplaced returns a warning for a flag of gorun that stands after the program, and so is the program's; empty: there is none. It does not
// look at what follows another launcher.
func (o *flags) misplaced(command []string) string {
	for i, arg := range command {
		if arg == "--" || slices.Contains(launchers, filepath.Base(arg)) || strings.HasPrefix(arg, "torch.distributed.") {
			return ""
		}
		written, _, _ := strings.Cut(arg, "=")
		name, dashes := strings.CutPrefix(strings.ReplaceAll(written, "_", "-"), "--")
		f := flagNamed(name)
		if i > 0 && dashes && f != nil && f.unmistakable && !o.isSet(name) {
			return quote(command[0]) + " gets " + written + ", which follows it: write flags of gorun before the program"
		}
	}
	return ""
}
