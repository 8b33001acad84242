package python_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// onNodes runs a program on two machines with two ranks each, which share memory on each, and returns what each prints, and the errors.
func onNodes(t *testing.T, module string, flags []string, program ...string) (outs [2]string, errs [2]error) {
	t.Helper()
	path, prefix := python(t, module), testkit.Library(t, "../..")
	gorun, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-secret-of-this-test-alone-long-enough"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--nnodes=2", "--nproc-per-node=2", "--omp-num-threads=1", "--rdzv-backend=embedded", "--rdzv-endpoint=node0",
		"--rdzv-token-file=" + token, "--log-dir=" + t.TempDir()}, flags...)
	var printed [2]bytes.Buffer
	var cmds [2]*exec.Cmd
	for i, m := range hosttest.NewMachines(t, hosttest.Config{Name: "node0"}, hosttest.Config{Name: "node1"}) {
		cmds[i] = ofPackage(t, prefix, path, gorun, append(args, program...)...)
		cmds[i].Stdout, cmds[i].Stderr = &printed[i], &printed[i]
		if err := m.Start(cmds[i]); err != nil {
			t.Fatal(err)
		}
	}
	var ending sync.WaitGroup
	for i, cmd := range cmds {
		ending.Go(func() { errs[i] = cmd.Wait() })
	}
	ending.Wait()
	return [2]string{printed[0].String(), printed[1].String()}, errs
}

// TestNodes: programs give the same on two machines, whatever ranks send each other, in the clear and by TLS.
func TestNodes(t *testing.T) {
	testkit.Nightly(t, "it takes a minute")
	for _, c := range []struct {
		module, says string
		program      []string
	}{
		{"numpy", "the same", []string{"tests/grid.py"}},
		{"numpy", "all of it", []string{"tests/calls.py"}},
		{"numpy", "all of it", []string{"tests/cases.py", "processes", "orders", "kinds", "groups", "signals", "wrong", "leaves"}},
		{"torch", "all of it", []string{"tests/torch_calls.py", filepath.Join(t.TempDir(), "store")}},
		{"torch", "all of it", []string{"tests/torch_train.py"}},
		{"torch", "all of it", []string{"tests/torch_rejoin.py", "-"}},
	} {
		for _, flags := range [][]string{nil, {"--worker-tls"}} {
			t.Run(fmt.Sprint(c.program[0], flags), func(t *testing.T) {
				outs, errs := onNodes(t, c.module, append([]string{"--on-failure=replace", "--max-restarts=1"}, flags...), c.program...)
				if n := strings.Count(outs[0]+outs[1], "] "+c.says) + strings.Count(outs[0]+outs[1], ": "+c.says); errs != [2]error{} || n != 4 {
					t.Errorf("%v: %d of 4 ranks say %q:\n%s\n%s", errs, n, c.says, outs[0], outs[1])
				}
			})
		}
	}
}

// TestHangAndReplace: a rank that hangs is named and replaced, and the others go on in their processes.
func TestHangAndReplace(t *testing.T) {
	testkit.Nightly(t, "TestHangOnNodes and torch_rejoin.py test the parts")
	outs, errs := onNodes(t, "torch", []string{"--hang-timeout=10", "--on-failure=replace", "--max-restarts=1"}, "tests/torch_rejoin.py", "-", "hangs")
	out := outs[0] + outs[1]
	if n := strings.Count(out, "round 2: all of it"); errs != [2]error{} || n != 4 {
		t.Errorf("%v: %d of 4 ranks have done all of it:\n%s", errs, n, out)
	}
	if got := regexp.MustCompile(`rank \d \(.* hangs: it made no progress`).FindAllString(out, -1); len(got) != 1 || !strings.HasPrefix(got[0], "rank 1 ") {
		t.Errorf("named: %q, want rank 1:\n%s", got, out)
	}
}

// TestHangOnNodes: of four ranks on two machines, the one that hangs is named, by its own node.
func TestHangOnNodes(t *testing.T) {
	testkit.Nightly(t, "TestHang tests the rules on one node")
	for _, c := range []struct {
		backend, module, how string
	}{{"gorun", "numpy", "lock"}, {"gloo", "torch", "lock"}, {"gloo", "torch", "naps"}} {
		outs, _ := onNodes(t, c.module, []string{"--hang-timeout=2"}, "tests/hang.py", "2", c.backend, c.how)
		if !regexp.MustCompile(`gorun: rank 2 \(.* hangs: it made no progress for .*; it was in load \(hang\.py:`).MatchString(outs[1]) {
			t.Errorf("%s, %s: node 1 does not name rank 2:\n%s", c.backend, c.how, outs[1])
		}
		if n := strings.Count(outs[0]+outs[1], " hangs: it made no progress"); n != 1 {
			t.Errorf("%s, %s: %d ranks are named:\n%s\n%s", c.backend, c.how, n, outs[0], outs[1])
		}
	}
}
