package launcher

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
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

// oomCounters returns the files that may have the count of this process's memory cgroup, the best first. cgroup and
// mountinfo are the contents of these files of /proc/self.
func oomCounters(cgroup, mountinfo string) (files []string) {
	for line := range strings.Lines(cgroup) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // "4:memory:/job", "0::/job"
		if len(fields) < 3 {
			continue
		}
		v1 := slices.Contains(strings.Split(fields[1], ","), "memory")
		if !v1 && fields[0] != "0" {
			continue
		}
		for mount := range strings.Lines(mountinfo) {
			root, point, ok := cgroupMount(mount, v1)
			if !ok {
				continue
			}
			group, ok := below(root, fields[2])
			if !ok {
				continue
			}
			if v1 {
				files = append(files, path.Join(point, group, "memory.oom_control"))
				continue
			}
			// Where a group has no memory controller, its parent's is in charge of it.
			for ; group != "/"; group = path.Dir(group) {
				files = append(files, path.Join(point, group, "memory.events"))
			}
			files = append(files, path.Join(point, "memory.events"))
		}
	}
	return files
}

// cgroupMount reads a line of mountinfo: "35 31 0:32 /root /mount/point rw,relatime - cgroup cgroup rw,memory". ok is
// false if it is not of cgroup v1 with the memory controller, or of v2.
func cgroupMount(line string, v1 bool) (root, point string, ok bool) {
	before, after, _ := strings.Cut(line, " - ")
	where, what := strings.Fields(before), strings.Fields(after)
	if len(where) < 5 || len(what) < 3 {
		return "", "", false
	}
	if v1 {
		ok = what[0] == "cgroup" && slices.Contains(strings.Split(what[2], ","), "memory")
	} else {
		ok = what[0] == "cgroup2"
	}
	return where[3], where[4], ok
}

// below returns the path of a group as seen from root, which a mount shows; "/" is root itself.
func below(root, group string) (string, bool) {
	rest, ok := strings.CutPrefix(group+"/", strings.TrimSuffix(root, "/")+"/")
	if !ok || strings.Contains("/"+rest, "/../") { // of another namespace
		return "", false
	}
	return path.Clean("/" + rest), true
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
