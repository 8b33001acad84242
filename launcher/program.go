package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Program is what the user asked to run, as an argv that can be executed.
type Program struct {
	Argv    []string
	TempDir string // holds the binary, if it was built; empty otherwise
}

// Close removes the binary, if it was built.
func (p *Program) Close() error {
	if p.TempDir == "" {
		return nil
	}
	return os.RemoveAll(p.TempDir)
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
//   - a file x.py: a script for the interpreter of Python, unbuffered (-u);
//   - a directory with Go files, or a file x.go: a Go program, built now in its own module; what the
//     compiler says goes to buildOutput;
//   - anything else: an executable, looked for in PATH if the name has no slash.
//
// Errors are *NotFoundError, *NotExecutableError and *BuildError, or ctx's while building.
func Resolve(ctx context.Context, target string, args []string, buildOutput io.Writer) (*Program, error) {
	info, err := os.Stat(target)
	isDir := err == nil && info.IsDir()
	switch {
	case isDir && isPath(target):
		return resolveDir(ctx, target, args, buildOutput)
	case strings.HasSuffix(target, ".go") && !isDir:
		if err != nil {
			return nil, statError(target, err)
		}
		return build(ctx, target, args, buildOutput)
	case strings.HasSuffix(target, ".py") && !isDir:
		if err != nil {
			return nil, statError(target, err)
		}
		python, err := lookPath(Python())
		if err != nil {
			return nil, fmt.Errorf("%w (it runs %s; PYTHON_EXEC names another)", err, target)
		}
		return &Program{Argv: append([]string{python, "-u", target}, args...)}, nil
	}
	program, err := ResolveExecutable(target, args)
	if _, missing := errors.AsType[*NotFoundError](err); missing && isDir {
		return resolveDir(ctx, target, args, buildOutput)
	}
	return program, err
}

// ResolveExecutable is Resolve for a target that is an executable whatever it is called.
func ResolveExecutable(target string, args []string) (*Program, error) {
	path, err := lookPath(target)
	if err != nil {
		return nil, err
	}
	return &Program{Argv: append([]string{path}, args...)}, nil
}

// Python is the interpreter for Python: $PYTHON_EXEC, or python3.
func Python() string {
	if python := os.Getenv("PYTHON_EXEC"); python != "" {
		return python
	}
	return "python3"
}

// isPath tells a path from a name to look for in PATH.
func isPath(target string) bool {
	return strings.ContainsRune(target, filepath.Separator) || target == "." || target == ".."
}

func resolveDir(ctx context.Context, dir string, args []string, buildOutput io.Writer) (*Program, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, statError(dir, err)
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".go") }) {
		return nil, &NotExecutableError{Path: dir, Reason: "it is a directory without Go files"}
	}
	return build(ctx, dir, args, buildOutput)
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
			e.Hint = "it is not in PATH; for the one in this directory write ./" + name
		}
		return "", e
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", &NotExecutableError{Path: name, Reason: "it is not an executable file (chmod +x makes it one)"}
	}
	return "", statError(name, err)
}

// statError explains why the file at path cannot be looked at.
func statError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &NotFoundError{Path: path}
	}
	reason := err
	for next := errors.Unwrap(reason); next != nil; next = errors.Unwrap(reason) {
		reason = next // without "stat" and the path again
	}
	return &NotExecutableError{Path: path, Reason: reason.Error()}
}
