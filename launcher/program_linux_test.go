package launcher

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files, by path, into a new directory and makes it the current one.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

func TestResolveExecutables(t *testing.T) {
	dir := tree(t, map[string]string{
		"bin/tool": "#!/bin/sh\n", "bin/plain": "text", "here": "#!/bin/sh\n", "x.py": "", "empty/readme": "", "bin/tool2/main.go": "",
	})
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	args := []string{"a b", "", "--flag"}
	for _, tt := range []struct {
		target string
		argv   []string // without args
		err    string
	}{
		{"tool", []string{dir + "/bin/tool"}, ""},
		{"./bin/tool", []string{"./bin/tool"}, ""},
		{dir + "/bin/tool", []string{dir + "/bin/tool"}, ""},
		{"x.py", []string{dir + "/bin/tool", "-u", "x.py"}, ""},
		{"./x.py", []string{dir + "/bin/tool", "-u", "./x.py"}, ""},
		{"nope", nil, "nope: no such program: it is not in PATH"},
		{"here", nil, "here: no such program: it is not in PATH; for the one in this directory write ./here"},
		{"./nope", nil, "./nope: no such program"},
		{"nope.py", nil, "nope.py: no such program"},
		{"nope.go", nil, "nope.go: no such program"},
		{"x.py/y.py", nil, "x.py/y.py: no such program"},
		{"./bin/plain", nil, "./bin/plain cannot be executed: it is not an executable file (chmod +x makes it one; a Python script is named x.py)"},
		{"./empty", nil, "./empty cannot be executed: it is a directory without Go files or __main__.py"},
		{"empty", nil, "empty cannot be executed: it is a directory without Go files or __main__.py"},
		{"./bin/tool2", []string{"./bin/tool2"}, ""}, // Go source: not built
		{"", nil, ": no such program: it is not in PATH"},
	} {
		p, err := Python("tool").Resolve(tt.target, args)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("Resolve(%q): error %v, want %s", tt.target, err, tt.err)
			}
			continue
		}
		if err != nil || !slices.Equal(p.Argv, append(tt.argv, args...)) {
			t.Errorf("Resolve(%q) = %+v, %v; want %q", tt.target, p, err, tt.argv)
		}
	}
	if p, err := ResolveExecutable("x.py", nil); err == nil {
		t.Errorf("ResolveExecutable(x.py) = %+v", p)
	}
	_, err := Python("python9").Resolve("x.py", nil)
	if _, ok := errors.AsType[*NotFoundError](err); !ok ||
		err.Error() != "python9: no such program: it is not in PATH (it runs x.py; --python and PYTHON_EXEC name another)" {
		t.Errorf("no interpreter: %v", err)
	}
}

func TestResolvedErrorsHaveTheirTypes(t *testing.T) {
	tree(t, map[string]string{"plain": "text"})
	_, err := Python("").Resolve("./nope", nil)
	if _, ok := errors.AsType[*NotFoundError](err); !ok {
		t.Errorf("%T", err)
	}
	_, err = Python("").Resolve("./plain", nil)
	if _, ok := errors.AsType[*NotExecutableError](err); !ok {
		t.Errorf("%T", err)
	}
}

func mustResolve(t *testing.T, target string, args ...string) *Program {
	t.Helper()
	p, err := Python("").Resolve(target, args)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestResolveGo(t *testing.T) {
	tree(t, map[string]string{
		"mod/go.mod":       "module example.com/mod\n",
		"mod/cmd/main.go":  "package main\n\nimport \"example.com/mod/lib\"\n\nfunc main() { println(lib.Word()) }\n",
		"mod/lib/lib.go":   "package lib\n\nfunc Word() string { return \"built\" }\n",
		"mod/bad/main.go":  "package main\n\nfunc main() { undefined() }\n",
		"single/single.go": "package main\n\nfunc main() { println(\"built\") }\n",
		"single/other.go":  "this is not Go and not asked for\n",
	})
	for _, target := range []string{"./mod/cmd", "mod/cmd/", "mod/cmd/main.go", "single/single.go"} {
		var output bytes.Buffer
		dir := t.TempDir()
		p := mustResolve(t, target, "arg")
		if p.Source != target || p.Argv[0] != target {
			t.Errorf("Resolve(%q) = %+v", target, p)
		}
		if err := p.Build(t.Context(), dir, &output); err != nil || output.Len() > 0 {
			t.Fatalf("%s: %v\n%s", target, err, &output)
		}
		if p.Source != "" || filepath.Dir(p.Argv[0]) != dir {
			t.Errorf("built %s: %+v", target, p)
		}
		s, con := spec(t, 1)
		s.Argv = p.Argv
		if e := exits(t, start(t, s))[0]; e.Failed() || con.String() != "[0] built\n" || p.Argv[1] != "arg" {
			t.Errorf("%s: %v\n%s", target, e, con)
		}
		if err := p.Build(t.Context(), "/nowhere", nil); err != nil {
			t.Errorf("%s: built again: %v", target, err)
		}
	}
}

func TestResolveGoFailures(t *testing.T) {
	tree(t, map[string]string{
		"go.mod":         "module example.com/mod\n",
		"bad/main.go":    "package main\n\nfunc main() { undefined() }\n",
		"lib/lib.go":     "package lib\n",
		"test/x_test.go": "package test\n",
	})
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, tt := range []struct{ target, want, output string }{
		{"./bad", "cannot build ./bad: go build failed (exit status 1)", "undefined: undefined"},
		{"./lib", "cannot build ./lib: its package is not main, so it is not a program", ""},
		{"./test", "cannot build ./test: go build failed (exit status 1)", "no non-test Go files"},
	} {
		var output bytes.Buffer
		err := mustResolve(t, tt.target).Build(t.Context(), t.TempDir(), &output)
		if _, ok := errors.AsType[*BuildError](err); !ok || err.Error() != tt.want || !strings.Contains(output.String(), tt.output) {
			t.Errorf("%s: %T %v\n%s", tt.target, err, err, &output)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := mustResolve(t, "./bad").Build(ctx, t.TempDir(), &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("PATH", "")
	err := mustResolve(t, "./bad").Build(t.Context(), t.TempDir(), nil)
	if want := "cannot build ./bad: it is Go source, and there is no go command in PATH: " +
		"install Go, or build the program elsewhere and run the binary"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A go command that a signal ends leaves its files where they are removed with the binary, but for a directory that the user has chosen.
func TestKilledBuildLeavesNothingElsewhere(t *testing.T) {
	dir := tree(t, map[string]string{"x.go": "package main\n", "bin/go": "#!/bin/sh\nmkdir ${GOTMPDIR:-$TMPDIR}/left && kill -INT $$\n"})
	temp, chosen := filepath.Join(dir, "tmp"), filepath.Join(dir, "chosen")
	if err := errors.Join(os.Mkdir(temp, 0o755), os.Mkdir(chosen, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", temp)
	for _, where := range []string{"", chosen} {
		t.Setenv("GOTMPDIR", where)
		to := filepath.Join(t.TempDir(), "bin")
		err := mustResolve(t, "./x.go").Build(t.Context(), to, nil)
		if err == nil || !strings.Contains(err.Error(), "signal: interrupt") {
			t.Fatal(err)
		}
		if where == "" {
			where = to
		}
		if _, err := os.Stat(filepath.Join(where, "left")); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
