package drill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/hosts"
	"github.com/gorun/gorun/env/proc"
)

// memoryRoom is how much memory a process in a memoryGroup may take in addition when it is bounded.
const memoryRoom = 64 << 20

// A memoryGroup is a cgroup for a worker whose memory is bounded.
type memoryGroup struct {
	dir               string
	usage, limit, off string // files: what is used, the bound, and the bound for swap, or how readily the kernel swaps
}

// newMemoryGroup makes a cgroup below that of this process, or, where this has no memory controller to pass on, of one above.
func newMemoryGroup() (*memoryGroup, error) {
	own, _ := os.ReadFile("/proc/self/cgroup") // if one cannot be read, there is no group to be found
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	reason := errors.New("there is no cgroup with a memory controller")
	for _, g := range proc.Cgroups(string(own), string(mounts), "memory") {
		if g.Outside {
			continue
		}
		for _, parent := range g.Dirs {
			removeStale(parent)
			m := &memoryGroup{filepath.Join(parent, groupPrefix+strconv.Itoa(os.Getpid())), "memory.current", "memory.max", "memory.swap.max"}
			if g.V1 {
				m.usage, m.limit, m.off = "memory.usage_in_bytes", "memory.limit_in_bytes", "memory.swappiness"
			}
			if err := os.Mkdir(m.dir, 0o755); err != nil {
				reason = err
				continue
			}
			if _, err := os.Stat(filepath.Join(m.dir, m.limit)); err == nil {
				return m, nil
			}
			_ = os.Remove(m.dir)
		}
	}
	return nil, &hosts.UnavailableError{Why: fmt.Sprintf("cannot bound the memory of a worker (%v): this needs root, and a cgroup", reason)}
}

// groupPrefix is what the names of memory groups begin with. The process ID of the drill follows.
const groupPrefix = "gorun-drill-"

// removeStale removes the groups of drills that were killed.
func removeStale(parent string) {
	stale, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*")) // the pattern is good
	for _, dir := range stale {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), groupPrefix))
		if _, alive := proc.Read(pid); err == nil && !alive {
			_ = os.Remove(dir) // fails as long as a process is in it
		}
	}
}

// bound moves a process into the group, and sets the bound.
func (m *memoryGroup) bound(pid int) error {
	if err := m.write("cgroup.procs", strconv.Itoa(pid)); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(m.dir, m.usage))
	if err != nil {
		return err
	}
	used, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return err
	}
	_ = m.write(m.off, "0") // a machine without swap may not have it
	return m.write(m.limit, strconv.FormatUint(used+memoryRoom, 10))
}

func (m *memoryGroup) write(name, text string) error {
	return os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0)
}

// remove removes the group, whose process has ended. It reports whether it could.
func (m *memoryGroup) remove() bool {
	for begun := time.Now(); ; time.Sleep(endPause) { // the kernel takes a moment to forget its process
		err := os.Remove(m.dir)
		if err == nil || time.Since(begun) > endTimeout {
			return err == nil
		}
	}
}

// machineOOMKills returns what the kernel says of the processes of this machine that it has killed because memory was short; empty: nothing.
func machineOOMKills() string {
	text, _ := os.ReadFile("/proc/vmstat") // where there is none, it says nothing
	return proc.Field(string(text), "oom_kill ")
}
