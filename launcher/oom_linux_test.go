package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseOOMKills(t *testing.T) {
	for _, tt := range []struct {
		text string
		want uint64
		ok   bool
	}{
		{"low 0\nhigh 0\nmax 41\noom 2\noom_kill 3\noom_group_kill 4\n", 3, true}, // memory.events
		{"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", 7, true},                // memory.oom_control
		{"oom_kill_disable 0\nunder_oom 0\n", 0, false},                           // before Linux 4.13
		{"pgfault 12\noom_kill 0\nnuma_hit 3", 0, true},                           // vmstat
		{"oom_kill many\n", 0, false},
		{"", 0, false},
	} {
		if n, ok := parseOOMKills(tt.text); n != tt.want || ok != tt.ok {
			t.Errorf("%q: %d %v, want %d %v", tt.text, n, ok, tt.want, tt.ok)
		}
	}
}

func TestOOMCounters(t *testing.T) {
	const v1 = "24 1 0:22 / /proc rw - proc proc rw\n" +
		"33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n" +
		"35 31 0:32 %s /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	const v2 = "30 23 0:26 %s /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	for _, tt := range []struct {
		name, cgroup, mountinfo, root string
		want                          []string
	}{
		{"v1", "9:name=systemd:/\n4:memory:/job/1\n2:cpuacct:/x\n0::/\n", v1, "/",
			[]string{"/sys/fs/cgroup/memory/job/1/memory.oom_control", "/sys/fs/cgroup/unified/memory.events"}},
		{"v1, container", "4:cpu,memory:/docker/ab:c\n", v1, "/docker/ab:c", []string{"/sys/fs/cgroup/memory/memory.oom_control"}},
		{"v1, another's", "4:memory:/docker/abc\n", v1, "/docker/ab", nil},
		{"v2", "0::/user.slice/run.scope\n", v2, "/", []string{"/sys/fs/cgroup/user.slice/run.scope/memory.events",
			"/sys/fs/cgroup/user.slice/memory.events", "/sys/fs/cgroup/memory.events"}},
		{"v2, container", "0::/\n", v2, "/", []string{"/sys/fs/cgroup/memory.events"}},
		{"v2, host's namespace", "0::/kube/pod/c\n", v2, "/kube/pod", []string{"/sys/fs/cgroup/c/memory.events", "/sys/fs/cgroup/memory.events"}},
		{"v2, outside", "0::/../other\n", v2, "/", nil},
		{"neither", "", "", "", nil},
		{"garbage", "0:\n:::\n4:memory\n", "- \n\n - cgroup2\n", "", nil},
	} {
		mounts := strings.Replace(tt.mountinfo, "%s", tt.root, 1)
		if got := oomCounters(tt.cgroup, mounts); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzOOMCounters(f *testing.F) {
	f.Add("4:memory:/job/1\n0::/a/b\n", "35 31 0:32 / /m rw - cgroup cgroup rw,memory\n41 31 0:38 /a /u rw - cgroup2 cgroup2 rw\n")
	f.Fuzz(func(t *testing.T, cgroup, mountinfo string) {
		for _, name := range oomCounters(cgroup, mountinfo) {
			if base := filepath.Base(name); base != "memory.events" && base != "memory.oom_control" {
				t.Errorf("%q", name)
			}
		}
	})
}

// Every kill explains one worker: the kernel's two, and not what somebody else kills later.
func TestOOMKillsAreTakenOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "memory.events")
	set := func(n int) {
		if err := os.WriteFile(name, fmt.Appendf(nil, "oom 9\noom_kill %d\n", n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set(5)
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	o := &oomKills{counter: file, taken: 5}
	for i, step := range []struct {
		count int
		want  bool
	}{{5, false}, {7, true}, {7, true}, {7, false}, {8, true}} {
		set(step.count)
		if got := o.take(); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	if (&oomKills{}).take() {
		t.Error("taken without a counter")
	}
}

// limitedGroup makes a cgroup in which memory is short, and removes it with the test.
func limitedGroup(t *testing.T, bytes int) string {
	t.Helper()
	own, err := readSmall("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := readSmall("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, counter := range oomCounters(own, mounts) {
		if filepath.Base(counter) != "memory.oom_control" {
			continue
		}
		dir := filepath.Join(filepath.Dir(counter), fmt.Sprintf("gorun-test-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skip("NOT TESTED: no memory cgroup can be made:", err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), fmt.Append(nil, bytes), 0o644); err != nil {
			t.Skip("NOT TESTED:", err)
		}
		return dir
	}
	t.Skip("NOT TESTED: there is no cgroup v1 with memory limits here")
	return ""
}

func TestOutOfMemory(t *testing.T) {
	group := limitedGroup(t, 192<<20)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The agent begins in the group, and all that it starts.
	agent, stdin, con := startAgentBy(t, []string{"/bin/sh", "-c", `echo $$ > "$1"/cgroup.procs && shift && exec "$@"`, "sh", group, exe},
		nil, "", "/bin/sh", "-c", `if [ "$RANK" = 0 ]; then exec "$0" hog; fi; exec "$0" wait`, exe)
	con.wait(t, "exit of 0: signal 9 (SIGKILL), out of memory: true\n", 1)
	// The other is killed by somebody else.
	if err := syscall.Kill(con.pids(t, "worker", 2)[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	con.wait(t, "exit of 1: signal 9 (SIGKILL), out of memory: false\n", 1)
	_ = stdin.Close()
	if err := agent.Wait(); err != nil {
		t.Error(err)
	}
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

func BenchmarkOOMKills(b *testing.B) {
	for b.Loop() {
		o := newOOMKills()
		if o.counter == nil {
			b.Skip("there is no counter")
		}
		_ = o.counter.Close()
	}
}
