package launcher

import (
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/gorun/gorun/launcher/cgroup"
)

// oomKills counts the processes that the kernel has killed because memory was short. It asks the memory cgroup in
// which the guard, and so every worker, begins (in cgroup v2 those below count, too), and if there is none that can be
// read, /proc/vmstat. In a container that would be the whole host's count, other people's kills among them.
//
// It is not told whom the kernel killed. A worker that was killed, and not by its guard, is taken for one of those
// counted since the gang's start; every count explains one worker. So a worker can be wrongly taken for one only if
// somebody else sends it SIGKILL after the kernel has killed another process of the group. A worker that was moved to
// a group elsewhere is missed.
type oomKills struct {
	counter *os.File // nil: there is none
	taken   uint64   // the count at the start, and those that explain a worker since
}

func newOOMKills() *oomKills {
	// If one cannot be read there is no group to be found.
	own, _ := readSmall("/proc/self/cgroup")
	mounts, _ := readSmall("/proc/self/mountinfo")
	for _, name := range append(oomCounters(own, mounts), "/proc/vmstat") {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		o := &oomKills{counter: file}
		if n, ok := o.count(); ok {
			o.taken = n
			return o
		}
		_ = file.Close()
	}
	return &oomKills{}
}

// take reports whether the kernel has killed a process that has not been taken yet, and takes it.
func (o *oomKills) take() bool {
	n, ok := o.count()
	if !ok || n <= o.taken {
		return false
	}
	o.taken++
	return true
}

func (o *oomKills) count() (uint64, bool) {
	if o.counter == nil {
		return 0, false
	}
	buf := make([]byte, 32<<10) // vmstat has 5 KiB
	n, err := o.counter.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false
	}
	return parseOOMKills(string(buf[:n]))
}

// parseOOMKills finds the count in memory.events, memory.oom_control or vmstat: they call it the same.
func parseOOMKills(text string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if number, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// oomCounters returns the files that may have the count of this process's memory cgroup, the best first. own and
// mountinfo are the contents of cgroup and mountinfo in /proc/self.
func oomCounters(own, mountinfo string) (files []string) {
	for _, g := range cgroup.Groups(own, mountinfo, "memory") {
		switch {
		case g.Outside: // what is seen are other people's
		case g.V1:
			files = append(files, path.Join(g.Dirs[0], "memory.oom_control"))
		default:
			// Where a group has no memory controller, its parent's is in charge of it.
			for _, dir := range g.Dirs {
				files = append(files, path.Join(dir, "memory.events"))
			}
		}
	}
	return files
}

// readSmall reads a file of /proc, as far as 1 MiB.
func readSmall(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	b, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return string(b), err
}
