package drill

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env/proc"
)

// resources are what a process has, which must not become more and more, in the order of limits.
type resources [len(limits)]int

// limits bound the growth of each resource between the first half of a process's life and its last quarter. They leave room for what is no
// leak: connections that come and go with faults, threads for a busy machine, and garbage that is not collected yet. A leak of one after each
// of many faults exceeds them.
var limits = [...]struct {
	what string
	more int
}{
	descriptors: {"descriptors", 24},
	threads:     {"threads", 24},
	memory:      {"KiB of memory", 96 << 10},
	goroutines:  {"goroutines", 64}, // of workers, which report them
}

const (
	descriptors = iota
	threads
	memory
	goroutines
)

// readResources reads those of a process from /proc. It fails if the process has ended.
func readResources(pid int) (r resources, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return r, err
	}
	r[descriptors] = len(entries)
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	r[threads], _ = strconv.Atoi(proc.Field(string(text), "Threads:")) // a number
	r[memory], _ = strconv.Atoi(strings.TrimSuffix(proc.Field(string(text), "VmRSS:"), " kB"))
	return r, err
}

// exceeds says of what there is more than before, by more than the limit allows; empty: nothing.
func (r resources) exceeds(before resources) string {
	for i, limit := range limits {
		if r[i] > before[i]+limit.more {
			return fmt.Sprintf("at least %d %s, where it had at most %d", r[i], limit.what, before[i])
		}
	}
	return ""
}

// A usage is what one process had at the beginning and after each fault.
type usage struct {
	name    string
	samples []resources
}

// leastSamples is how many samples it takes to judge.
const leastSamples = 8

// grows says of what the process has too much: throughout the last quarter of its life, it had more than ever in the first half, by more
// than the limits; empty: of nothing.
func (u *usage) grows() string {
	n := len(u.samples)
	if n < leastSamples {
		return ""
	}
	least, most := u.samples[n-1], u.samples[0]
	for i := range limits {
		for _, r := range u.samples[n-n/4:] {
			least[i] = min(least[i], r[i])
		}
		for _, r := range u.samples[:n/2] {
			most[i] = max(most[i], r[i])
		}
	}
	return least.exceeds(most)
}

// usages are those of all processes, by process ID.
type usages map[int]*usage

// sample reads what every agent, etcd and worker that lives has now.
func (u usages) sample(d *drill) {
	add := func(pid int, name string, count int) {
		r, err := readResources(pid)
		if err != nil {
			return // it has just ended
		}
		r[goroutines] = count
		if u[pid] == nil || u[pid].name != name {
			u[pid] = &usage{name: name}
		}
		u[pid].samples = append(u[pid].samples, r)
	}
	for _, group := range []map[int]*process{d.agents, d.etcds} {
		for _, p := range group {
			if !p.ended {
				add(p.cmd.Process.Pid, p.name, 0)
			}
		}
	}
	for _, k := range d.live(anywhere) {
		add(k.Pid, fmt.Sprintf("a worker of node %d", k.Node), k.goroutines)
	}
}

// check returns an error if what a process has grows.
func (u usages) check() error {
	for pid, p := range u {
		if more := p.grows(); more != "" {
			return fmt.Errorf("%s (pid %d) has %s, in the first half of %d faults", p.name, pid, more, len(p.samples)-1)
		}
	}
	return nil
}

// report describes for people the processes that have lived longest, one of each kind.
func (u usages) report() (lines []string) {
	longest := make(map[string]*usage)
	for _, p := range u {
		kind := strings.TrimRight(p.name, "0123456789")
		if l := longest[kind]; l == nil || len(p.samples) > len(l.samples) || len(p.samples) == len(l.samples) && p.name < l.name {
			longest[kind] = p
		}
	}
	for _, p := range longest {
		var parts []string
		for i, limit := range limits {
			if last := p.samples[len(p.samples)-1][i]; last > 0 {
				parts = append(parts, fmt.Sprintf("%s %d to %d", limit.what, p.samples[0][i], last))
			}
		}
		lines = append(lines, fmt.Sprintf("%s, over %d faults: %s", p.name, len(p.samples)-1, strings.Join(parts, ", ")))
	}
	slices.Sort(lines)
	return lines
}
