package python_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestTorch runs the programs of folder tests whose names begin with torch, on so many ranks, under gorun.
func TestTorch(t *testing.T) {
	path, prefix := python(t, "torch"), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program string
		ranks   []int
		flags   []string
	}{
		{"torch_calls.py", testkit.UnlessShort([]int{2, 3, 4}, []int{3}), nil},
		{"torch_cases.py", testkit.UnlessShort([]int{3}, nil), nil},
		{"torch_train.py", testkit.UnlessShort([]int{2, 3}, []int{2}), nil},
		{"torch_train.py", testkit.UnlessShort([]int{3}, nil), []string{"--env=TORCH_DISTRIBUTED_DEBUG=DETAIL"}},
		{"torch_rejoin.py", testkit.UnlessShort([]int{2, 3}, nil), []string{"--on-failure=replace", "--max-restarts=1"}},
		{"torch_rejoin.py meeting", testkit.UnlessShort([]int{3}, nil), []string{"--on-failure=replace", "--max-restarts=1"}},
		{"torch_rejoin.py met", testkit.UnlessShort([]int{3}, nil), []string{"--on-failure=replace", "--max-restarts=1"}},
	} {
		for _, ranks := range c.ranks {
			t.Run(fmt.Sprint(c.program, ranks), func(t *testing.T) {
				program := strings.Fields(c.program)
				args := slices.Concat(c.flags, []string{
					"--omp-num-threads=1", fmt.Sprint("--nproc-per-node=", ranks), "--log-dir=" + t.TempDir(),
					filepath.Join("tests", program[0]), filepath.Join(t.TempDir(), "store"),
				}, program[1:])
				out, err := ofPackage(t, prefix, path, gorun, args...).CombinedOutput()
				if n := bytes.Count(out, []byte("all of it")); err != nil || n != ranks {
					t.Errorf("%v, %d of %d ranks have done all of it:\n%s", err, n, ranks, out)
				}
			})
		}
	}
}

// TestTorch2 runs the programs with torch 2, which is in a folder of scripts/torch2.
func TestTorch2(t *testing.T) {
	testkit.Nightly(t, "torch 2 has to be downloaded")
	folder := os.Getenv("TORCH2")
	if folder == "" || os.Getuid() != 0 {
		testkit.Cannot(t, "TORCH2 names no folder of scripts/torch2, or this is not root")
	}
	prefix := testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"torch_calls.py", "torch_cases.py", "torch_train.py", "torch_rejoin.py", "torch_new.py", "torch_shards.py"} {
		t.Run(program, func(t *testing.T) {
			cmd := ofPackage(t, prefix, "/usr/bin/python3", "../../scripts/torch2", folder, gorun, "--omp-num-threads=1", "--nproc-per-node=3",
				"--on-failure=replace", "--max-restarts=1", filepath.Join("tests", program), filepath.Join(t.TempDir(), "store"))
			cmd.Env = append(cmd.Env, "TMPDIR="+os.TempDir(), "TORCHINDUCTOR_CACHE_DIR="+t.TempDir()) // where the folder is seen
			if out, err := cmd.CombinedOutput(); err != nil || bytes.Count(out, []byte("all of it")) != 3 {
				t.Errorf("%v: want that 3 ranks have done all of it:\n%s", err, out)
			}
		})
	}
}

// TestTorchElastic: a model that is trained while ranks die has the parameters of one that is trained without, bit for bit. The command is
// that of docs/torch.md.
func TestTorchElastic(t *testing.T) {
	path, prefix := python(t, "torch"), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	undisturbed := ""
	for _, c := range []struct{ kills, backend string }{{"", "gorun"}, {"1@40", "gorun"}, {"1@40,0@70,1@90", "gloo"}} {
		if c.backend == "gloo" && testing.Short() {
			continue
		}
		cmd := ofPackage(t, prefix, path, gorun, "--omp-num-threads=1", "--preload=auto", "--preload-strict", "--on-failure=replace", "--max-restarts=3",
			"--nproc-per-node=2", "../../docs/examples/torch_elastic/main.py", "--backend="+c.backend, "--kill="+c.kills)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		line, outlived, _ := strings.Cut(strings.TrimSpace(string(out)), ", outlived ")
		if undisturbed == "" {
			undisturbed = line
		}
		if err != nil || line != undisturbed || !strings.Contains(line, "parameters") || outlived != fmt.Sprint(strings.Count(c.kills, "@")) {
			t.Errorf("%+v: %v: %q, and undisturbed %q\n%s", c, err, out, undisturbed, &stderr)
		}
	}
}

// TestTorchParts: ranks that die get the shards of a model back, and the optimizers of these, bit for bit.
func TestTorchParts(t *testing.T) {
	path, prefix := python(t, "torch"), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	undisturbed := make(map[string]string) // by backend
	for _, c := range testkit.UnlessShort(
		[][2]string{{"gorun", ""}, {"gorun", "1@0,2@13,0@29"}, {"gloo", ""}, {"gloo", "0@7,2@30"}}, [][2]string{{"gorun", ""}, {"gorun", "1@0,2@13"}},
	) {
		cmd := ofPackage(t, prefix, path, gorun, "--omp-num-threads=1", "--preload=torch", "--on-failure=replace", "--max-restarts=3", "--nproc-per-node=3",
			"--env=KILLS="+c[1], "tests/torch_parts.py", c[0])
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		line := string(out)
		if undisturbed[c[0]] == "" {
			undisturbed[c[0]] = line
		}
		if err != nil || line != undisturbed[c[0]] || !strings.Contains(line, "parameters") {
			t.Errorf("%q: %v: %q, and undisturbed %q\n%s", c, err, line, undisturbed[c[0]], &stderr)
		}
	}
}

// TestTorchDrill: what a drill breaks in a job in PyTorch recovers.
func TestTorchDrill(t *testing.T) {
	testkit.Nightly(t, "TestTorchElastic tests recovery")
	path, prefix := python(t, "torch"), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"--preload", "worker-kill agent-kill"} {
		cmd := ofPackage(t, prefix, path, gorun, append([]string{"drill", "--worker=torch"}, strings.Fields(args)...)...)
		cmd.Env = append(cmd.Env, "PYTHONPATH="+here, "TMPDIR="+os.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

// TestTorchDeath: if a rank dies while others are in backward, their errors name it.
func TestTorchDeath(t *testing.T) {
	testkit.Nightly(t, "the errors of the C library are tested there")
	path, prefix := python(t, "torch"), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, _ := ofPackage(t, prefix, path, gorun, "--omp-num-threads=1", "--nproc-per-node=3", "--log-dir="+t.TempDir(), "tests/torch_train.py",
		"", "dies").CombinedOutput()
	if n := bytes.Count(out, []byte("all of it")); n != 2 {
		t.Errorf("%d of 2 ranks name the one that has died:\n%s", n, out)
	}
}

// TestTorchSuite runs torch's own tests with gloo and with gorun. Every case that passes with gloo passes with gorun.
func TestTorchSuite(t *testing.T) {
	testkit.Nightly(t, "torch's own tests take two minutes")
	path, prefix := python(t, "torch"), testkit.Library(t, "../..")
	passed := map[string][]string{}
	for _, backend := range []string{"gloo", "gorun"} {
		out, err := ofPackage(t, prefix, path, path, "tests/torch_suite.py", backend, t.TempDir()).Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", backend, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if name, ok := strings.CutPrefix(line, "passed "); ok {
				passed[backend] = append(passed[backend], strings.TrimSpace(name))
			}
		}
	}
	if len(passed["gloo"]) < 80 {
		t.Errorf("with gloo, %d cases pass: want at least 80", len(passed["gloo"]))
	}
	for _, name := range passed["gloo"] {
		if !slices.Contains(passed["gorun"], name) {
			t.Errorf("%s passes with gloo, and not with gorun", name)
		}
	}
}

// ofPackage returns a command that finds the package, the library and Python at path.
func ofPackage(t *testing.T, prefix, path, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "PYTHON_EXEC="+path, "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1", "USE_LIBUV=0", "TMPDIR="+t.TempDir(),
		"GORUN_LIBRARY="+filepath.Join(prefix, "lib", "libgorun.so.1"))
	return cmd
}
