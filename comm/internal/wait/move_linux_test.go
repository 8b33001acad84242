package wait

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// cpusetHelper is a variable with the directory of a cpuset. If it is set, this program moves a thread in that cpuset, and runs no tests.
const cpusetHelper = "GORUN_TEST_CPUSET"

// A thread that has moved gets the processors that its cpuset is given later.
func TestMoveBindsNothingForLater(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil || !allowed.IsSet(0) || !allowed.IsSet(1) {
		t.Skip("this test takes processors 0 and 1")
	}
	var dir string
	for _, top := range []string{"/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"} {
		name := filepath.Join(top, fmt.Sprint("gorun-test-", os.Getpid()))
		if os.Mkdir(name, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(name); err != nil {
				t.Error(err)
			}
		})
		if _, err := os.Stat(name + "/cpuset.cpus"); err == nil {
			dir = name
			break
		}
	}
	if dir == "" {
		testkit.Cannot(t, "this test may make no cpuset")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), cpusetHelper+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "0-1" {
		t.Errorf("got %s, %v, want 0-1", out, err)
	}
}

// TestMain moves a thread in a cpuset instead, if it is told to.
func TestMain(m *testing.M) {
	if dir := os.Getenv(cpusetHelper); dir != "" {
		if err := moveInCpuset(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// moveInCpuset moves in a cpuset of one processor that gets another one then, and prints the processors of this thread.
func moveInCpuset(dir string) error {
	runtime.LockOSThread()
	set := func(file, value string) error { return os.WriteFile(filepath.Join(dir, file), []byte(value), 0) }
	before := errors.Join(set("cpuset.mems", "0"), set("cpuset.cpus", "0"), set("cgroup.procs", fmt.Sprint(os.Getpid())))
	if before != nil {
		return before
	}
	move(func(uint32) bool { return true })
	if err := set("cpuset.cpus", "0-1"); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:\t"); ok {
			fmt.Print(strings.TrimSpace(list))
		}
	}
	return err
}
