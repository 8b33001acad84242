package heap

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env/proc"
)

// available returns how many bytes of memory this process may still use. If it used more, the kernel would kill processes.
func available() int { return availableIn(os.DirFS("/")) }

// availableIn returns the least of the memory that is available on the machine, and of what is left in the control groups of this
// process, its own and all above. A file that cannot be read sets no limit.
func availableIn(root fs.FS) int {
	read := func(name string) string {
		text, _ := fs.ReadFile(root, strings.TrimPrefix(name, "/")) // absent if there is no such controller
		return strings.TrimSpace(string(text))
	}
	least := field(read("/proc/meminfo"), "MemAvailable:")
	if least < math.MaxInt>>10 {
		least <<= 10 // from KiB
	}
	for _, g := range proc.Cgroups(read("/proc/self/cgroup"), read("/proc/self/mountinfo"), "memory") {
		limit, usage, reclaimable := "memory.max", "memory.current", "inactive_file"
		if g.V1 {
			limit, usage, reclaimable = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		}
		for _, dir := range g.Dirs {
			most, err := strconv.Atoi(read(path.Join(dir, limit)))
			used, usedErr := strconv.Atoi(read(path.Join(dir, usage)))
			if err != nil || usedErr != nil { // "max", or no such file
				continue
			}
			if files := field(read(path.Join(dir, "memory.stat")), reclaimable); files < used {
				used -= files // the kernel drops the pages of files before it kills
			}
			least = min(least, max(0, most-used))
		}
	}
	return least
}

// field returns the number after name in a text of lines "name number", or math.MaxInt if there is none.
func field(text, name string) int {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			if n, err := strconv.Atoi(f[1]); err == nil {
				return n
			}
		}
	}
	return math.MaxInt
}
