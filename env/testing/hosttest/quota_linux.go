package hosttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/testing/testkit"
)

// quotaPeriod is how often a machine with a quota gets processor time anew: when it has used its part, it stands still for the rest.
const quotaPeriod = 10 * time.Millisecond

// leastQuota is the shortest time that Linux grants in a period.
const leastQuota = time.Millisecond

// Quota makes a slow machine: its processes, and those that they start, get the time of so many processors together, as in a container with a CPU
// limit. Commands that the test starts on the machine afterwards are not among them. If there is no cgroup for that, the test is skipped: cgroups
// of version 2 mostly have no quota below one that has processes.
func (m *Machine) Quota(t testing.TB, processors float64) {
	t.Helper()
	dir, files := m.quotaFiles(t, processors)
	if err := os.Mkdir(dir, 0o755); err != nil {
		testkit.Cannot(t, "a machine with a quota of processor time takes a cgroup: %v", err)
	}
	t.Cleanup(func() { m.removeGroup(t, dir) })
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			testkit.Cannot(t, "a cgroup cannot have a quota: %v", err)
		}
	}
	for moved := map[int]bool{}; ; { // until there are none that were started meanwhile
		before := len(moved)
		for _, pid := range m.processes(t) {
			moved[pid] = true
			err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
			if err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
				t.Fatal(err)
			}
		}
		if len(moved) == before {
			return
		}
	}
}

// quotaFiles returns the directory of the group that the machine gets, and what its files say.
func (m *Machine) quotaFiles(t testing.TB, processors float64) (dir string, files map[string]string) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	groups := proc.Cgroups(read("/proc/self/cgroup"), read("/proc/self/mountinfo"), "cpu")
	if len(groups) == 0 {
		testkit.Cannot(t, "a machine with a quota of processor time takes a cgroup")
	}
	period := quotaPeriod.Microseconds()
	quota := int64(processors * float64(period))
	if quota < leastQuota.Microseconds() {
		t.Fatalf("%g processors: want at least %g", processors, leastQuota.Seconds()/quotaPeriod.Seconds())
	}
	dir = filepath.Join(groups[0].Dirs[0], fmt.Sprintf("hosttest-%d-%d", os.Getpid(), m.init.Process.Pid))
	if groups[0].V1 {
		return dir, map[string]string{"cpu.cfs_period_us": fmt.Sprint(period), "cpu.cfs_quota_us": fmt.Sprint(quota)}
	}
	return dir, map[string]string{"cpu.max": fmt.Sprint(quota, " ", period)}
}

// processes returns the machine's processes, by the numbers that they have outside.
func (m *Machine) processes(t testing.TB) (pids []int) {
	t.Helper()
	namespace := func(pid string) string {
		name, _ := os.Readlink("/proc/" + pid + "/ns/pid") // "" if it has just ended
		return name
	}
	own := namespace(strconv.Itoa(m.init.Process.Pid))
	if own == "" {
		t.Fatal("the machine has no process")
	}
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		pid := filepath.Base(path)
		if n, err := strconv.Atoi(pid); err == nil && namespace(pid) == own {
			pids = append(pids, n)
		}
	}
	return pids
}

// removeGroup kills the machine, or its group could not be removed.
func (m *Machine) removeGroup(t testing.TB, dir string) {
	m.Kill()
	var err error
	for range 1000 { // those that were killed leave it one after the other
		if err = os.Remove(dir); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(err)
}
