// Package python_test tests the Python package.
package python_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// python returns a Python that has a module, such as numpy.
func python(t *testing.T, module string) string {
	t.Helper()
	for _, path := range []string{cmp.Or(os.Getenv("PYTHON_EXEC"), "python3"), "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), path, "-c", "import "+module).Run() == nil {
			return path
		}
	}
	testkit.Cannot(t, "no Python has %s", module)
	return ""
}

// TestPrograms runs the programs of folder tests under gorun, on so many ranks.
func TestPrograms(t *testing.T) {
	path, prefix := python(t, "numpy"), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, says string
		ranks         []int
		flags         []string
	}{
		{"grid.py", "the same", testkit.UnlessShort([]int{1, 2, 3, 4}, []int{1, 3}), nil},
		{"grid.py", "the same", []int{2}, []string{"--env=TRANSPORT=tcp"}},
		{"calls.py", "all of it", []int{2, 3}, nil},
		{"parts.py", "all of it", []int{1, 3}, nil},
		{"elastic.py", "all of it", []int{1, 3}, []string{"--on-failure=replace", "--max-restarts=4"}},
		{"elastic_differ.py", "all of it", []int{2}, []string{"--env=CASE=names"}},
		{"elastic_differ.py", "all of it", []int{2}, []string{"--env=CASE=shape"}},
		{"elastic_differ.py", "all of it", []int{2}, []string{"--env=CASE=type"}},
		{"elastic_differ.py", "all of it", []int{2}, []string{"--env=CASE=form"}},
		{"elastic_differ.py", "all of it", []int{2}, []string{"--env=CASE=parts"}},
		{"ops.py", "all of it", []int{1, 3}, []string{"--env=STORE=" + t.TempDir()}},
		{"ops.py", "all of it", []int{2}, []string{"--env=STORE=" + t.TempDir(), "--env=TRANSPORT=tcp"}},
	} {
		for _, ranks := range c.ranks {
			t.Run(fmt.Sprint(c.program, ranks), func(t *testing.T) {
				args := append([]string{"--omp-num-threads=1", fmt.Sprint("--nproc-per-node=", ranks)}, c.flags...)
				cmd := exec.CommandContext(t.Context(), gorun, append(args, filepath.Join("tests", c.program))...)
				cmd.Env = append(os.Environ(), "PYTHON_EXEC="+path, "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1",
					"GORUN_LIBRARY="+filepath.Join(prefix, "lib", "libgorun.so.1"))
				out, err := cmd.CombinedOutput()
				if n := bytes.Count(out, []byte(c.says)); err != nil || n != ranks {
					t.Errorf("%v, %d of %d ranks say %q:\n%s", err, n, ranks, c.says, out)
				}
			})
		}
	}
}

// TestCases: what a program does besides calls is right or an error, and so is how its ranks end.
func TestCases(t *testing.T) {
	path, prefix := python(t, "numpy"), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cases string
		done  int    // ranks that do all of it
		ends  string // of the root cause; empty: the job succeeds
	}{
		{"processes orders kinds groups works signals wrong leaves", 3, ""},
		{"crash:11", 2, "-11 (SIGSEGV)"},
		{"crash:6", 2, "-6 (SIGABRT)"},
		{"crash:9", 2, "-9 (SIGKILL)"},
		{"raises", 2, "1 (pid"},
	} {
		for _, transport := range testkit.UnlessShort([]string{"shm", "tcp"}, []string{"shm"}) {
			args := append([]string{"--omp-num-threads=1", "--nproc-per-node=3", "--env=TRANSPORT=" + transport, "--log-dir=" + t.TempDir(),
				"tests/cases.py"}, strings.Fields(c.cases)...)
			out, err := ofPackage(t, prefix, path, gorun, args...).CombinedOutput()
			_, cause, _ := strings.Cut(string(out), "Root Cause")
			if n := bytes.Count(out, []byte("] all of it\n")); n != c.done || (err == nil) != (c.ends == "") || !strings.Contains(cause, c.ends) ||
				c.ends != "" && !regexp.MustCompile(`rank +: 1 `).MatchString(cause) {
				t.Errorf("%s by %s: %v, %d of %d ranks have done all of it, want an end with %q:\n%s", c.cases, transport, err, n, c.done, c.ends, out)
			}
		}
	}
}

// TestNoLauncher: without a launcher, an error says what to write; a world of one is never made by surprise.
func TestNoLauncher(t *testing.T) {
	path, prefix := python(t, "numpy"), testkit.Library(t, "../..")
	for program, want := range map[string]string{
		"import gorun; gorun.init()":            "RANK is not set: .*; start the program with gorun --nproc-per-node N PROGRAM",
		"import gorun; gorun.rejoin()":          "this process was not started by gorun --on-failure=replace",
		"import gorun; gorun.init('tcp://x:1')": "RANK is not set",
	} {
		out, err := ofPackage(t, prefix, path, path, "-c", program).CombinedOutput()
		if err == nil || !regexp.MustCompile(`\ngorun\.ArgumentError: comm: .*`+want+`.*\n$`).Match(out) {
			t.Errorf("%s: %v, want %q:\n%s", program, err, want, out)
		}
	}
}

// TestWheel installs the wheel in a fresh environment, and runs a program with its gorun.
func TestWheel(t *testing.T) {
	path, dist, venv := python(t, "numpy"), t.TempDir(), filepath.Join(t.TempDir(), "venv")
	bin := filepath.Join(venv, "bin")
	program := filepath.Join(t.TempDir(), "mean.py")
	if err := os.WriteFile(program, []byte(mean), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "-m", "venv", venv).CombinedOutput(); err != nil {
		testkit.Cannot(t, "%v\n%s", err, out)
	}
	script, err := filepath.Abs("../../scripts/wheel")
	if err != nil {
		t.Fatal(err)
	}
	wheel := run(t, script, "--output", dist)
	if !testing.Short() { // another folder makes the same wheel
		clone, again := filepath.Join(t.TempDir(), "clone"), t.TempDir()
		run(t, "git", "clone", "-q", "--shared", filepath.Dir(filepath.Dir(script)), clone)
		run(t, filepath.Join(clone, "scripts", "wheel"), "--output", again)
		if cmp, err := exec.CommandContext(t.Context(), "diff", "-r", dist, again).CombinedOutput(); err != nil {
			t.Errorf("two wheels differ (is all of this committed?): %s", cmp)
		}
	}
	run(t, filepath.Join(bin, "pip"), "install", "-q", "--no-index", "--disable-pip-version-check", strings.TrimSpace(wheel))
	for _, command := range [][]string{{filepath.Join(bin, "gorun")}, {filepath.Join(bin, "python"), "-m", "gorun"}} {
		out := run(t, command[0], append(command[1:], "--omp-num-threads=1", "--nproc-per-node=2", program)...)
		if got := slices.Sorted(strings.Lines(out)); !slices.Equal(got, []string{"[0] 0.5\n", "[1] 0.5\n"}) {
			t.Errorf("%s: %s", command, out)
		}
	}
}

const mean = `import array, gorun
world = gorun.init()
grads = array.array("f", [world.rank])
world.all_reduce(grads, gorun.AVG)
print(grads[0])
`

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = t.TempDir() // here, Python would find the package that is not installed
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PYTHON") })
	var stderr strings.Builder // a rank that waits for long says so there
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, args, err, out, &stderr)
	}
	return string(out)
}

// TestHang: gorun names the rank that hangs outside of its calls, for which the others wait, and shows where it is.
func TestHang(t *testing.T) {
	prefix := testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		backend, module, how string
		ranks                int
		nightly              bool
	}{
		{"gorun", "numpy", "sleep", 3, false}, {"gloo", "torch", "lock", 2, false}, {"gloo", "torch", "sleep", 3, true},
		{"gloo", "torch", "pipe", 3, true}, {"gloo", "torch", "naps", 3, true},
	} {
		if c.nightly && testing.Short() {
			continue
		}
		path := python(t, c.module)
		for rank := range testkit.UnlessShort(c.ranks, 1) {
			out, _ := ofPackage(t, prefix, path, gorun, "--omp-num-threads=1", fmt.Sprint("--nproc-per-node=", c.ranks), "--hang-timeout=1",
				"--log-dir="+t.TempDir(), filepath.Join("tests", "hang.py"), fmt.Sprint(rank), c.backend, c.how).CombinedOutput()
			if n := bytes.Count(out, []byte(" hangs: it made no progress")); n != 1 {
				t.Errorf("%d ranks are named, want 1", n)
			}
			named := fmt.Sprintf(`\[ERROR\] gorun: rank %d \(.* hangs: it made no progress for .*; it was in load \(hang.py:`, rank)
			shown := fmt.Sprintf(`\[%d\]   File ".*hang\.py", line \d+ in load\n`, rank)
			for _, want := range []string{named, shown, `ranks? .* in (backward|call) \(`} {
				if !regexp.MustCompile(want).Match(out) {
					t.Errorf("rank %d hangs, %s, %s: no %q in\n%s", rank, c.backend, c.how, want, out)
				}
			}
			if bytes.Contains(out, []byte("py-spy")) {
				t.Errorf("rank %d hangs, %s: all stacks are known, and py-spy is recommended:\n%s", rank, c.backend, out)
			}
		}
	}
}

// TestExamples: the examples print what is in their expected.txt.
func TestExamples(t *testing.T) {
	prefix := testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, module string
		ranks        int
	}{{"torch_ddp", "torch", 2}, {"numpy_heat", "numpy", 4}} {
		folder := filepath.Join("../../docs/examples", c.name)
		want, err := os.ReadFile(filepath.Join(folder, "expected.txt"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := ofPackage(t, prefix, python(t, c.module), gorun, "--omp-num-threads=1", fmt.Sprint("--nproc-per-node=", c.ranks),
			"--log-dir="+t.TempDir(), filepath.Join(folder, "main.py"))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if got := slices.Sorted(strings.Lines(string(out))); err != nil || strings.Join(got, "") != string(want) {
			t.Errorf("%s: %v: %s\n%s", c.name, err, got, &stderr)
		}
	}
}
