package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/testing/testkit"
)

// limitedGroup makes a cgroup in which memory is short, and removes it with the test.
func limitedGroup(t *testing.T, bytes int) string {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range proc.Cgroups(string(own), string(mounts), "memory") {
		if g.Outside || !g.V1 {
			continue
		}
		dir := filepath.Join(g.Dirs[0], fmt.Sprintf("gorun-test-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			testkit.Cannot(t, "NOT TESTED: no memory cgroup can be made: %v", err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), fmt.Append(nil, bytes), 0o644); err != nil {
			testkit.Cannot(t, "NOT TESTED: %v", err)
		}
		return dir
	}
	testkit.Cannot(t, "NOT TESTED: there is no cgroup v1 with memory limits here")
	return ""
}

// TestOutOfMemory: the kernel kills a worker, or a child of one that then fails. It has nothing to do with the end of the other.
func TestOutOfMemory(t *testing.T) {
	group := limitedGroup(t, 192<<20)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ first, ending string }{
		{`exec "$0" hog`, "signal 9 (SIGKILL)"},
		{`"$0" hog; exit 3`, "exit code 3"},
	} {
		before := machineKills(t)
		// The agent begins in the group, and all that it starts.
		agent, stdin, con := startAgentBy(t, []string{"/bin/sh", "-c", `echo $$ > "$1"/cgroup.procs && shift && exec "$@"`, "sh", group, exe},
			nil, "", "/bin/sh", "-c", `if [ "$RANK" = 0 ]; then `+c.first+`; fi; exec "$0" wait`, exe)
		con.wait(t, "exit of 0: "+c.ending+", out of memory: true\n", 1)
		// The other is killed by somebody else.
		if err := syscall.Kill(con.pids(t, "worker", 2)[1], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		con.wait(t, "exit of 1: signal 9 (SIGKILL), out of memory: ", 1)
		if others := machineKills(t) - before - 1; others > 0 { // such as in a drill: the guard cannot tell that it was not this worker
			t.Logf("the kernel has killed %d more on this machine", others)
		} else {
			con.wait(t, "exit of 1: signal 9 (SIGKILL), out of memory: false\n", 1)
		}
		_ = stdin.Close()
		if err := agent.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// machineKills is how many processes of this machine the kernel has killed because memory was short.
func machineKills(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\noom_kill ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// hog asks for memory until the kernel has enough of it.
func hog([]string) {
	must(os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o644)) // rather it than its guard
	for {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
		must(err)
		b[0] = 1
	}
}
