// Package python_test tests the Python package.
package python_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// python returns a Python that has numpy.
func python(t *testing.T) string {
	t.Helper()
	for _, path := range []string{cmp.Or(os.Getenv("PYTHON_EXEC"), "python3"), "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), path, "-c", "import numpy").Run() == nil {
			return path
		}
	}
	testkit.Cannot(t, "no Python has numpy")
	return ""
}

// TestPrograms runs the programs of folder tests under gorun, on so many ranks.
func TestPrograms(t *testing.T) {
	path, prefix := python(t), testkit.Library(t, "../..")
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
	} {
		for _, ranks := range c.ranks {
			t.Run(fmt.Sprint(c.program, ranks), func(t *testing.T) {
				t.Parallel()
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
