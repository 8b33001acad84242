package guard

import (
	"errors"
	"io"
	"os"
	"path"
	"strconv"

	"github.com/gorun/gorun/env/proc"
)

// oomKills counts the processes that the kernel has killed because memory was short. It counts those in the memory
// cgroup in which the guard and all workers start (in cgroup v2, also in the cgroups below), and those on the whole
// machine, because a worker may have moved to another cgroup.
//
// The kernel does not say which process it killed. If a worker was killed, and not by its guard, it is assumed to be one of
// those counted since the gang's start; each count explains one worker. This is wrong only if somebody else sends SIGKILL to
// the worker after the kernel has killed another process of the machine, or, in a container, of its host. If a worker failed in another way,
// the kernel may have killed one of its children, such as a data loader.
type oomKills struct {
	group, machine oomCounter
}

// An oomCounter is a file that contains the kernel's count.
type oomCounter struct {
	file  *os.File // nil: there is none
	taken uint64   // the count at the start, and those that explain a worker since
}

func newOOMKills() *oomKills {
	// If one cannot be read there is no group to be found.
	own, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	return &oomKills{group: openOOMCounter(oomCounters(string(own), string(mounts))...), machine: openOOMCounter("/proc/vmstat")}
}

// openOOMCounter opens the first file that can be read.
func openOOMCounter(names ...string) oomCounter {
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		c := oomCounter{file: file}
		if n, ok := c.count(); ok {
			c.taken = n
			return c
		}
		_ = file.Close()
	}
	return oomCounter{}
}

// begin forgets what has happened while there were no workers.
func (o *oomKills) begin() {
	o.group.taken, _ = o.group.count()
	o.machine.taken, _ = o.machine.count()
}

// take reports whether the kernel has killed a process that has not been taken yet, and takes it. A process that
// was killed in the group also counts for the machine. If the worker itself was not killed, a process of the machine that is not in the group
// explains nothing, unless there is no group.
func (o *oomKills) take(killed bool) bool {
	ofGroup := o.group.take()
	if !ofGroup && !killed && o.group.file != nil {
		return false
	}
	ofMachine := o.machine.take()
	return ofGroup || ofMachine
}

func (c *oomCounter) take() bool {
	n, ok := c.count()
	if !ok || n <= c.taken {
		return false
	}
	c.taken++
	return true
}

func (c *oomCounter) count() (uint64, bool) {
	if c.file == nil {
		return 0, false
	}
	buf := make([]byte, 32<<10) // vmstat has 5 KiB
	n, err := c.file.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false
	}
	return parseOOMKills(string(buf[:n]))
}

// parseOOMKills finds the count in memory.events, memory.oom_control or vmstat, which all use the same name for it.
func parseOOMKills(text string) (uint64, bool) {
	n, err := strconv.ParseUint(proc.Field(text, "oom_kill "), 10, 64)
	return n, err == nil
}

// oomCounters returns the files that may contain the count of this process's memory cgroup, the best first. own
// and mountinfo are the contents of cgroup and mountinfo in /proc/self.
func oomCounters(own, mountinfo string) (files []string) {
	for _, g := range proc.Cgroups(own, mountinfo, "memory") {
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
