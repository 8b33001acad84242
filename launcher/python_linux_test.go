package launcher

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestPythonShebang(t *testing.T) {
	for _, tt := range []struct {
		head  string
		whole bool
		want  []string
	}{
		{"#!/usr/bin/env python3\nprint()", false, []string{"python3"}},
		{"#! /usr/bin/python\r\n", false, []string{"/usr/bin/python"}},
		{"#!/opt/venv/bin/python3.11 -E\n", false, []string{"/opt/venv/bin/python3.11", "-E"}},
		{"#!/opt/venv/bin/python3.11\t-E -s \n", false, []string{"/opt/venv/bin/python3.11", "-E -s"}}, // Linux makes one of it
		{"#!/usr/bin/env -S python3.13t -X dev\n", false, []string{"python3.13t", "-X", "dev"}},
		{"#!/usr/bin/env -S A=b python3\n", false, nil},
		{"#!/usr/bin/env -S python3 '-X' dev\n", false, nil},
		{"#!/usr/bin/env -S\n", false, nil},
		{"#!/usr/bin/env python3 -u\n", false, nil}, // env looks for "python3 -u"
		{"#!/usr/bin/env\n", false, nil},
		{"#!pypy3\n", false, []string{"pypy3"}},
		{"#!python", true, []string{"python"}},
		{"#!/a/long/path/python", false, nil}, // that may go on
		{"#!/bin/sh\n# python\n", false, nil},
		{"#!/usr/bin/python-config\n", false, nil},
		{"#!\n", false, nil},
		{"#!", true, nil},
		{"#!/bin/python3\x00\n", false, nil},
		{" #!/bin/python3\n", false, nil},
		{"#\n", true, nil},
		{"", true, nil},
	} {
		if got := pythonShebang([]byte(tt.head), tt.whole); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.head, got, tt.want)
		}
	}
}

func FuzzPythonShebang(f *testing.F) {
	for _, head := range []string{"#!/usr/bin/env python3\n", "#!/usr/bin/env -S python3 -u\n", "#!/x/python -E\n", "#!", "\x7fELF"} {
		f.Add([]byte(head), true)
	}
	f.Fuzz(func(t *testing.T, head []byte, whole bool) {
		line := pythonShebang(head, whole)
		if line == nil {
			return
		}
		if !strings.HasPrefix(string(head), "#!") || !strings.Contains(filepath.Base(line[0]), "py") {
			t.Errorf("%q names %q", head, line)
		}
		for _, word := range line {
			if word == "" || strings.ContainsAny(word, "\n\x00") || !strings.Contains(string(head), word) {
				t.Errorf("%q names %q", head, line)
			}
		}
	})
}

func TestResolveScripts(t *testing.T) {
	dir := tree(t, map[string]string{
		"bin/python3": "#!/bin/sh\n", "bin/other": "#!/bin/sh\n", "bin/cli": "#!/usr/bin/env python3\n", "bin/shell": "#!/bin/sh\n",
		"own/bin/python3.11": "#!/bin/sh\n", "x.pyc": "", "x.pyz": "", "app/__main__.py": "", "both/__main__.py": "", "both/main.go": "",
		"train.py": "", "long": "#!/usr/bin/env python3 " + strings.Repeat(" ", maxShebang) + "\n",
	})
	script := func(name, text string) { // not executable
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script("own/script", "#!"+dir+"/own/bin/python3.11 -E\n")
	script("own/lost", "#!/nowhere/python3\n")
	script("own/shell", "#!/bin/sh\n")
	if err := exec.Command("mkfifo", "pipe").Run(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")) // env's, too
	for _, tt := range []struct {
		python Python
		target string
		argv   []string
		err    string
	}{
		{"", "x.pyc", []string{dir + "/bin/python3", "-u", "x.pyc"}, ""},
		{"other", "x.pyz", []string{dir + "/bin/other", "-u", "x.pyz"}, ""},
		{"", "./app", []string{dir + "/bin/python3", "-u", "./app"}, ""},
		{"", "app", []string{dir + "/bin/python3", "-u", "app"}, ""},
		{"", "./both", []string{"./both"}, ""}, // Go source
		{"", "cli", []string{dir + "/bin/python3", "-u", dir + "/bin/cli"}, ""},
		{"", "bin/cli", []string{dir + "/bin/python3", "-u", "bin/cli"}, ""},
		{"", "shell", []string{dir + "/bin/shell"}, ""},
		{"", "./long", []string{"./long"}, ""},
		{"", "own/script", []string{dir + "/own/bin/python3.11", "-E", "-u", "own/script"}, ""},
		{"other", "own/script", []string{dir + "/bin/other", "-u", "own/script"}, ""},
		{"", "own/lost", nil, "/nowhere/python3: no such program (it runs own/lost; --python and PYTHON_EXEC name another)"},
		{"", "own/shell", nil, "own/shell cannot be executed: it is not an executable file (chmod +x makes it one; a Python script is named x.py)"},
		{"", "./pipe", nil, "./pipe cannot be executed: it is not an executable file (chmod +x makes it one; a Python script is named x.py)"},
		{"", "train", nil, "train: no such program: it is not in PATH; did you mean train.py?"},
		{"", "./train", nil, "./train: no such program: did you mean ./train.py?"},
	} {
		p, err := tt.python.Resolve(tt.target, []string{"--x", ""})
		switch {
		case tt.err != "":
			if err == nil || err.Error() != tt.err {
				t.Errorf("Resolve(%q): error %v, want %s", tt.target, err, tt.err)
			}
		case err != nil || !slices.Equal(p.Argv, append(tt.argv, "--x", "")):
			t.Errorf("Resolve(%q) = %+v, %v; want %q", tt.target, p, err, tt.argv)
		}
	}
	p, err := ResolveExecutable("cli", nil)
	if err != nil || !slices.Equal(p.Argv, []string{dir + "/bin/cli"}) {
		t.Errorf("ResolveExecutable(cli) = %+v, %v", p, err)
	}
	t.Setenv("PATH", filepath.Join(dir, "own", "bin"))
	t.Setenv("VIRTUAL_ENV", dir)
	for python, want := range map[Python]string{"": dir + "/bin/python3", "python3.11": dir + "/own/bin/python3.11"} {
		if p, err := python.Resolve("x.pyc", nil); err != nil || p.Argv[0] != want {
			t.Errorf("in a virtual environment, %q is %+v, %v; want %s", python, p, err, want)
		}
	}
}

func TestResolveModuleErrors(t *testing.T) {
	tree(t, map[string]string{"pkg/train.py": "", "train.py": ""})
	for name, want := range map[string]string{
		"":             ": no such program: a module's name is wanted, like pkg.train",
		"pkg/train":    "pkg/train: no such program: a module's name is wanted, like pkg.train",
		"pkg/train.py": "pkg/train.py: no such program: it is a file; a module's name is wanted, like pkg.train",
		"train.py":     "train.py: no such program: it is a file; the module in it is called train",
		"pkg..train":   "pkg..train: no such program: a module's name is wanted, like pkg.train",
	} {
		_, err := Python("/bin/sh").ResolveModule(name, nil)
		if _, ok := errors.AsType[*NotFoundError](err); !ok || err.Error() != want {
			t.Errorf("%q: error %v, want %s", name, err, want)
		}
	}
	p, err := Python("/bin/sh").ResolveModule("x.py", []string{"a"}) // module py of package x
	if err != nil || !slices.Equal(p.Argv, []string{"/bin/sh", "-u", "-m", "x.py", "a"}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Python("/bin/sh").ResolveRunPath("nope.py", nil); err == nil || err.Error() != "nope.py: no such program" {
		t.Error(err)
	}
}

func TestRunPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		testkit.Cannot(t, "NOT TESTED: there is no python3 in PATH")
	}
	script := "import sys, os\nprint(__name__, sys.argv, sys.stdout.write_through, os.environ['RANK'])\nsys.exit(4)\n"
	tree(t, map[string]string{"x.py": script, "app/__main__.py": script, "pkg/__init__.py": "", "pkg/train.py": script,
		"cli": "#!/usr/bin/env python3\n" + script})
	for _, tt := range []struct {
		resolve func(string, []string) (*Program, error)
		target  string
		argv0   string
	}{
		{Python("").Resolve, "x.py", "x.py"}, {Python("").Resolve, "./app", "./app"}, {Python("").Resolve, "./cli", "./cli"},
		{Python("").ResolveModule, "pkg.train", "pkg/train.py"}, {Python("").ResolveRunPath, "x.py", "x.py"}, {Python("").ResolveRunPath, "app", "app"},
	} {
		p, err := tt.resolve(tt.target, []string{"-c", "a b"})
		if err != nil {
			t.Fatal(err)
		}
		s, con := spec(t, 1)
		s.Argv = p.Argv
		s.Workers[0].Env = append(os.Environ(), "RANK=0", "PYTHONDONTWRITEBYTECODE=1")
		e := exits(t, start(t, s))[0]
		text := con.String()
		if e.Code() != 4 || !strings.HasPrefix(text, "[0] __main__ ['") || !strings.HasSuffix(text, tt.argv0+"', '-c', 'a b'] True 0\n") {
			t.Errorf("%q: %v\n%s", p.Argv, e, con)
		}
	}
}
