package python_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	}{
		{"torch_calls.py", testkit.UnlessShort([]int{2, 3, 4}, []int{3})},
	} {
		for _, ranks := range c.ranks {
			t.Run(fmt.Sprint(c.program, ranks), func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), gorun, "--omp-num-threads=1", fmt.Sprint("--nproc-per-node=", ranks), "--log-dir="+t.TempDir(),
					filepath.Join("tests", c.program), filepath.Join(t.TempDir(), "store"))
				cmd.Env = append(os.Environ(), "PYTHON_EXEC="+path, "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1", "USE_LIBUV=0",
					"GORUN_LIBRARY="+filepath.Join(prefix, "lib", "libgorun.so.1"))
				out, err := cmd.CombinedOutput()
				if n := bytes.Count(out, []byte("all of it")); err != nil || n != ranks {
					t.Errorf("%v, %d of %d ranks have done all of it:\n%s", err, n, ranks, out)
				}
			})
		}
	}
}
