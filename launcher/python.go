package launcher

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// pythonFiles are the endings of the files that a Python interpreter runs.
var pythonFiles = []string{".py", ".pyc", ".pyz"}

// runPath runs argv[1] as the main program, with argv[1] and what follows as its sys.argv.
const runPath = `import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name="__main__")`

// Python is the interpreter of Python that runs programs: its path, or its name in PATH. Empty: that of the virtual
// environment which is active, or python3.
type Python string

// ResolveModule returns a program that runs the Python module called name (python -m), unbuffered. Only the
// interpreter finds out whether the module exists. Errors are *NotFoundError and *NotExecutableError.
func (p Python) ResolveModule(name string, args []string) (*Program, error) {
	if !moduleName(name) {
		e := &NotFoundError{Path: name, Hint: "a module's name is wanted, like pkg.train"}
		if _, err := os.Stat(name); err == nil && name != "" {
			e.Hint = "it is a file; a module's name is wanted, like pkg.train"
		}
		return nil, e
	}
	if module, isFile := strings.CutSuffix(name, ".py"); isFile {
		if _, err := os.Stat(name); err == nil {
			return nil, &NotFoundError{Path: name, Hint: "it is a file; the module in it is called " + module}
		}
	}
	return p.program(name, []string{"-m", name}, args)
}

// ResolveRunPath returns a program that runs a Python script with runpy.run_path in a new interpreter,
// unbuffered: __name__ is "__main__", and sys.argv is script and args. The script may also be a directory or a
// zip file with __main__.py. Errors are *NotFoundError and *NotExecutableError.
func (p Python) ResolveRunPath(script string, args []string) (*Program, error) {
	if _, err := os.Stat(script); err != nil {
		return nil, statError(script, err)
	}
	return p.program(script, []string{"-c", runPath, script}, args)
}

// interpreter returns what p stands for.
func (p Python) interpreter() string {
	if p != "" {
		return string(p)
	}
	if venv := os.Getenv("VIRTUAL_ENV"); venv != "" { // it may be missing in PATH
		if path, err := lookPath(filepath.Join(venv, "bin", "python3")); err == nil {
			return path
		}
	}
	return "python3"
}

// program returns a program that runs the interpreter with run and args. Errors name target.
func (p Python) program(target string, run, args []string) (*Program, error) {
	return pythonBy([]string{p.interpreter()}, target, run, args)
}

// pythonBy is like program, with the interpreter and options in line.
func pythonBy(line []string, target string, run, args []string) (*Program, error) {
	interpreter, err := lookPath(line[0])
	if err != nil {
		return nil, fmt.Errorf("%w (it runs %s; --python and PYTHON_EXEC name another)", err, target)
	}
	argv := append([]string{interpreter}, line[1:]...)
	argv = append(argv, "-u")
	return &Program{Argv: append(append(argv, run...), args...), Python: true}, nil
}

// moduleName reports whether name can be a module's: words between dots.
func moduleName(name string) bool {
	for word := range strings.SplitSeq(name, ".") {
		if word == "" || strings.ContainsAny(word, "/ ") {
			return false
		}
	}
	return true
}

// maxShebang is how much of a file Linux looks at for the interpreter.
const maxShebang = 256

// shebang returns the Python interpreter in the first line of the file at path, with its options, or nil if
// there is none or the file cannot be read. p overrides it.
func (p Python) shebang(path string) []string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil // to open a named pipe would wait for its writer
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, maxShebang)
	n, err := io.ReadFull(file, head)
	if n == 0 {
		return nil
	}
	line := pythonShebang(head[:n], err != nil)
	if line != nil && p != "" {
		return []string{string(p)}
	}
	return line
}

var pythonBinary = regexp.MustCompile(`^(python|pypy)[0-9.]*[a-z]?$`)

// pythonShebang parses the first line in head as Linux and env(1) do. It returns the interpreter and its options if
// it is a Python interpreter, otherwise nil. whole says that head is the whole file, so that its last line needs no
// line break.
func pythonShebang(head []byte, whole bool) []string {
	first, _, ended := bytes.Cut(head, []byte("\n"))
	line, ok := strings.CutPrefix(string(first), "#!")
	if !ok || !ended && !whole || strings.ContainsRune(line, 0) {
		return nil
	}
	interpreter, option := cutBlank(strings.TrimSpace(line))
	words := []string{interpreter}
	if option != "" {
		words = append(words, option) // one, whatever blanks it has
	}
	if filepath.Base(interpreter) == "env" {
		if split, ok := strings.CutPrefix(option, "-S"); ok {
			words = strings.Fields(split)
			if strings.ContainsAny(split, `"'\$#`) {
				return nil // env's own language
			}
		} else {
			words = words[1:]
		}
	}
	if len(words) == 0 || !pythonBinary.MatchString(filepath.Base(words[0])) {
		return nil
	}
	return words
}

// cutBlank cuts s at its first run of blanks.
func cutBlank(s string) (before, after string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}
