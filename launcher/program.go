package launcher

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Program is the program that the user asked to run.
type Program struct {
	// Argv can be executed, but for Argv[0] while Source is not empty.
	Argv []string
	// Source is a package directory, .go file or import path that Build has to build first; empty: there is nothing to build.
	Source string
	// imported says that Source is an import path.
	imported bool
	// Python says that an interpreter of Python runs it.
	Python bool
}

// Interpreter returns the interpreter of Python that runs p; empty: p needs none.
func (p *Program) Interpreter() string {
	if !p.Python {
		return ""
	}
	return p.Argv[0]
}

// NotFoundError says that there is no such program (exit code 127).
type NotFoundError struct {
	Path string
	Hint string // what to do; may be empty
}

func (e *NotFoundError) Error() string {
	if e.Hint == "" {
		return e.Path + ": no such program"
	}
	return e.Path + ": no such program: " + e.Hint
}

// NotExecutableError says that the program is there but cannot be executed (exit code 126).
type NotExecutableError struct {
	Path   string
	Reason string
}

func (e *NotExecutableError) Error() string {
	return e.Path + " cannot be executed: " + e.Reason
}

// Resolve finds out what target is:
//
//   - a file x.py, x.pyc or x.pyz, or a directory with __main__.py and no Go files: for the interpreter of Python,
//     unbuffered (-u);
//   - a directory with Go files, or a file x.go: Go source, which is not built yet (see Program.Build);
//   - an import path such as example.com/module/cmd/train, if the current directory is in a module or workspace, and there is no such
//     file: Go source too, of that module or of one that it requires;
//   - a file whose first line is #! and an interpreter of Python: for that interpreter, unbuffered, whether
//     the file is executable or not; p takes the place of the interpreter and its options;
//   - anything else: an executable.
//
// A name without a slash that is none of the first three is looked for in PATH.
//
// Errors are *NotFoundError and *NotExecutableError.
func (p Python) Resolve(target string, args []string) (*Program, error) {
	info, err := os.Stat(target)
	isDir := err == nil && info.IsDir()
	switch {
	case isDir && isPath(target):
		return p.resolveDir(target, args)
	case filepath.Ext(target) == ".go" && !isDir:
		if err != nil {
			return nil, statError(target, err)
		}
		return source(target, args), nil
	case slices.Contains(pythonFiles, filepath.Ext(target)) && !isDir:
		if err != nil {
			return nil, statError(target, err)
		}
		return p.program(target, []string{target}, args)
	}
	path, err := lookPath(target)
	_, missing := errors.AsType[*NotFoundError](err)
	if missing && isDir {
		return p.resolveDir(target, args)
	}
	if missing && isImportPath(target) && inModule() {
		return importPath(target, args)
	}
	if missing {
		return nil, err
	}
	if err == nil {
		target = path
	}
	if line := p.shebang(target); line != nil {
		return pythonBy(line, target, []string{target}, args)
	}
	if err != nil {
		return nil, err
	}
	return &Program{Argv: append([]string{path}, args...), Python: pythonBinary.MatchString(filepath.Base(path))}, nil
}

// ResolveExecutable is Resolve for a target that is an executable, whatever its name.
func ResolveExecutable(target string, args []string) (*Program, error) {
	path, err := lookPath(target)
	if err != nil {
		return nil, err
	}
	return &Program{Argv: append([]string{path}, args...)}, nil
}

// isPath reports whether target is a path, and not a name to look for in PATH.
func isPath(target string) bool {
	return strings.ContainsRune(target, filepath.Separator) || target == "." || target == ".."
}

func (p Python) resolveDir(dir string, args []string) (*Program, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, statError(dir, err)
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return filepath.Ext(e.Name()) == ".go" }) {
		return source(dir, args), nil
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "__main__.py" }) {
		return p.program(dir, []string{dir}, args)
	}
	return nil, &NotExecutableError{Path: dir, Reason: "it is a directory without Go files or __main__.py"}
}

// isImportPath reports whether target can be the import path of a package in a module that others can get: its first element has a dot,
// as a domain has.
func isImportPath(target string) bool {
	first, _, more := strings.Cut(target, "/")
	return more && strings.Contains(first, ".") && first[0] != '.'
}

// inModule reports whether the current directory is in a module or a workspace.
func inModule() bool {
	dir, err := os.Getwd()
	for err == nil {
		for _, name := range []string{"go.mod", "go.work"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
				return true
			}
		}
		if filepath.Dir(dir) == dir {
			return false
		}
		dir = filepath.Dir(dir)
	}
	return false
}

func importPath(target string, args []string) (*Program, error) {
	if plain, version, ok := strings.Cut(target, "@"); ok {
		return nil, &NotFoundError{Path: target, Hint: "run go install " + plain + "@" + version + ", and give gorun the program that it makes"}
	}
	program := source(target, args)
	program.imported = true
	return program, nil
}

// source returns a program of Go source. Build will set its Argv[0].
func source(target string, args []string) *Program {
	return &Program{Argv: append([]string{target}, args...), Source: target}
}

// lookPath finds an executable as a shell does.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // PATH has the current directory: so the user wants it
		return path, nil
	case !isPath(name):
		e := &NotFoundError{Path: name, Hint: "it is not in PATH"}
		if _, err := os.Stat(name); err == nil {
			e.Hint += "; for the one in this directory write ./" + name
		} else if refused := refusedInPath(name); refused != "" {
			return "", &NotExecutableError{Path: refused, Reason: reason(syscall.EACCES, refused)}
		} else if meant := withEnding(name); meant != "" {
			e.Hint += "; did you mean " + meant + "?"
		}
		return "", e
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", &NotExecutableError{Path: name, Reason: reason(syscall.EACCES, name)}
	}
	return "", statError(name, err)
}

// refusedInPath returns the first file of this name in PATH, which has none that can be executed; empty: there is none.
func refusedInPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// statError explains why the file at path cannot be examined.
func statError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		e := &NotFoundError{Path: path}
		if meant := withEnding(path); meant != "" {
			e.Hint = "did you mean " + meant + "?"
		}
		return e
	}
	return &NotExecutableError{Path: path, Reason: innermost(err).Error()}
}

// withEnding returns path with an ending that makes it the path of an existing script, or "".
func withEnding(path string) string {
	for _, ending := range []string{".py", ".go"} {
		if info, err := os.Stat(path + ending); err == nil && info.Mode().IsRegular() {
			return path + ending
		}
	}
	return ""
}
