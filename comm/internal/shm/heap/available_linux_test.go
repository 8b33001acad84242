package heap

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestAvailable(t *testing.T) {
	const (
		v2mount = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		v1mount = "31 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		meminfo = "MemTotal: 8000 kB\nMemAvailable:    4000 kB\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  int
	}{
		"the machine's": {map[string]string{"proc/meminfo": meminfo}, 4000 << 10},
		"nothing known": {nil, math.MaxInt},
		"no limit": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2mount,
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "1000\n",
		}, 4000 << 10},
		"version 2": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2mount,
			"sys/fs/cgroup/a/memory.max": "1000000\n", "sys/fs/cgroup/a/memory.current": "700000\n",
			"sys/fs/cgroup/a/memory.stat": "anon 500000\ninactive_file 200000\n",
		}, 500000},
		"one above": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": v2mount,
			"sys/fs/cgroup/a/b/memory.max": "1000000\n", "sys/fs/cgroup/a/b/memory.current": "0\n",
			"sys/fs/cgroup/a/memory.max": "2000000\n", "sys/fs/cgroup/a/memory.current": "1900000\n",
		}, 100000},
		"beyond its limit": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2mount,
			"sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.current": "2000\n",
		}, 0},
		"version 1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "5:memory:/a\n", "proc/self/mountinfo": v1mount,
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "3000000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "2500000\n",
			"sys/fs/cgroup/memory/a/memory.stat": "total_inactive_file 400000\n",
		}, 900000},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := availableIn(root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
