package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
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
	const v1 = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	const v2 = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const pod = "30 23 0:26 /kube/pod /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
	for _, tt := range []struct {
		name, cgroup, mountinfo string
		want                    []string
	}{
		{"both", "4:memory:/job/1\n0::/run\n", v2 + v1, []string{"/sys/fs/cgroup/memory/job/1/memory.oom_control",
			"/sys/fs/cgroup/unified/run/memory.events", "/sys/fs/cgroup/unified/memory.events"}},
		{"v1, outside", "4:memory:/../other\n", v1, nil},
		{"v2, outside", "0::/kube/other\n", pod, nil},
		{"v2, container", "0::/kube/pod\n", pod, []string{"/sys/fs/cgroup/memory.events"}},
	} {
		if got := oomCounters(tt.cgroup, tt.mountinfo); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Every kill explains one worker: the kernel's two, and not what somebody else kills later.
func TestOOMKillsAreTakenOnce(t *testing.T) {
	dir := t.TempDir()
	counters := map[string]int{"group": 5, "machine": 90}
	set := func(name string, n int) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, fmt.Appendf(nil, "oom 9\noom_kill %d\n", n), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	o := &oomKills{group: openOOMCounter(filepath.Join(dir, "none"), set("group", 5)), machine: openOOMCounter(set("machine", 90))}
	defer func() { _, _ = o.group.file.Close(), o.machine.file.Close() }()
	for i, step := range []struct {
		group, machine int // killed before a worker is seen killed
		want           bool
	}{
		{0, 0, false}, {2, 2, true}, {0, 0, true}, {0, 0, false}, {1, 1, true},
		{0, 1, true}, {0, 0, false}, // one that has moved to another group
		{0, 2, true}, {1, 1, true}, {0, 0, true}, {0, 0, false},
	} {
		counters["group"] += step.group
		counters["machine"] += step.machine
		for name, n := range counters {
			set(name, n)
		}
		if got := o.take(true); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	for _, step := range []struct {
		group, machine int
		killed, want   bool
	}{
		{0, 1, false, false}, {0, 0, true, true}, // somebody else's is not a child's
		{1, 1, false, true}, {0, 0, false, false}, {0, 0, true, false},
	} {
		counters["group"] += step.group
		counters["machine"] += step.machine
		for name, n := range counters {
			set(name, n)
		}
		if got := o.take(step.killed); got != step.want {
			t.Errorf("%+v: %v", step, got)
		}
	}
	set("group", counters["group"]+1)
	set("machine", counters["machine"]+1)
	o.begin()
	if o.take(true) {
		t.Error("what was killed before there were workers is taken for one")
	}
	noGroup := &oomKills{machine: openOOMCounter(set("machine", 100))}
	defer func() { _ = noGroup.machine.file.Close() }()
	set("machine", 101)
	if !noGroup.take(false) {
		t.Error("without a group, the machine's count is not taken for a child")
	}
	if (&oomKills{}).take(true) {
		t.Error("taken without a counter")
	}
}
