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

// pythonFiles are the endings of the files that the interpreter of Python runs.
var pythonFiles = []string{".py", ".pyc", ".pyz"}

// runPath makes argv[1] and what follows the arguments of a script and runs it as the main program.
const runPath = `import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name="__main__")`

// ResolveModule is the Python module called name, run as a program (python -m), unbuffered. Whether there is such a
// module is found out by the interpreter only. Errors are *NotFoundError and *NotExecutableError.
func ResolveModule(name string, args []string) (*Program, error) {
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
	return python(name, []string{"-m", name}, args)
}

// ResolveRunPath is a Python script that runpy.run_path runs in a fresh interpreter, unbuffered: __name__ is
// "__main__", sys.argv is script and args. It may also be a directory or a zip file with __main__.py. Errors are
// *NotFoundError and *NotExecutableError.
func ResolveRunPath(script string, args []string) (*Program, error) {
	if _, err := os.Stat(script); err != nil {
		return nil, statError(script, err)
	}
	return python(script, []string{"-c", runPath, script}, args)
}

// Python is the interpreter for Python: $PYTHON_EXEC, or python3.
func Python() string {
	if interpreter := os.Getenv("PYTHON_EXEC"); interpreter != "" {
		return interpreter
	}
	return "python3"
}

// python is the interpreter of Python with what it is to run, which errors call target, and the arguments for that.
func python(target string, run, args []string) (*Program, error) {
	return pythonBy([]string{Python()}, target, run, args)
}

// pythonBy is python for the interpreter and the options in line.
func pythonBy(line []string, target string, run, args []string) (*Program, error) {
	interpreter, err := lookPath(line[0])
	if err != nil {
		return nil, fmt.Errorf("%w (it runs %s; PYTHON_EXEC names another)", err, target)
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

// shebang returns the interpreter of Python that the first line of the file at path names, with its options, and
// nil if it names none or cannot be read. $PYTHON_EXEC takes its place.
func shebang(path string) []string {
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
	if line != nil && os.Getenv("PYTHON_EXEC") != "" {
		return []string{Python()}
	}
	return line
}

var pythonBinary = regexp.MustCompile(`^(python|pypy)[0-9.]*[a-z]?$`)

// pythonShebang reads the first line in head, as Linux and env(1) do: the interpreter and its options if it is one of
// Python, otherwise nil. whole says that head is all of the file: its last line needs no end.
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

// cutBlank cuts s around its first run of blanks.
func cutBlank(s string) (before, after string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}
