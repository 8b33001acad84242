package drill

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Resources are what a process has, which must not become more and more.
type Resources struct {
	Descriptors int `json:"descriptors"`
	Threads     int `json:"threads"`
	Memory      int `json:"memory_kib"`
	Goroutines  int `json:"goroutines,omitempty"` // of workers, which report them
}

// readResources reads those of a process from /proc. It fails if the process has ended.
func readResources(pid int) (r Resources, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return r, err
	}
	r.Descriptors = len(entries)
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.Atoi(fields[1]) // a number in the two lines that matter
		switch fields[0] {
		case "Threads:":
			r.Threads = n
		case "VmRSS:":
			r.Memory = n
		}
	}
	return r, err
}

// Limits of growth between the first half of a process's life and its last quarter. They leave room for what is no leak: connections that come
// and go with faults, threads for a busy machine, and garbage that is not collected yet. A leak of one after each of many faults exceeds them.
const (
	moreDescriptors = 24
	moreThreads     = 24
	moreGoroutines  = 64
	moreMemory      = 96 << 10 // KiB
)

// exceeds says what is too much more than before; empty: nothing.
func (r Resources) exceeds(before Resources) string {
	for _, c := range []struct {
		what        string
		now, before int
		more        int
	}{
		{"descriptors", r.Descriptors, before.Descriptors, moreDescriptors}, {"threads", r.Threads, before.Threads, moreThreads},
		{"goroutines", r.Goroutines, before.Goroutines, moreGoroutines}, {"KiB of memory", r.Memory, before.Memory, moreMemory},
	} {
		if c.now > c.before+c.more {
			return fmt.Sprintf("at least %d %s, where it had at most %d", c.now, c.what, c.before)
		}
	}
	return ""
}

// A usage is what one process had at the beginning and after each fault.
type usage struct {
	name    string
	samples []Resources
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
	return combine(u.samples[n-n/4:], lesser).exceeds(combine(u.samples[:n/2], greater))
}

func lesser(a, b int) int  { return min(a, b) }
func greater(a, b int) int { return max(a, b) }

// combine combines the numbers of each kind.
func combine(list []Resources, two func(a, b int) int) Resources {
	all := list[0]
	for _, r := range list[1:] {
		all = Resources{two(all.Descriptors, r.Descriptors), two(all.Threads, r.Threads), two(all.Memory, r.Memory), two(all.Goroutines, r.Goroutines)}
	}
	return all
}

// usages are those of all processes, by process ID.
type usages map[int]*usage

// sample reads what every agent, etcd and worker that lives has now.
func (u usages) sample(d *drill) {
	add := func(pid int, name string, goroutines int) {
		r, err := readResources(pid)
		if err != nil {
			return // it has just ended
		}
		r.Goroutines = goroutines
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
		a, b := p.samples[0], p.samples[len(p.samples)-1]
		text := fmt.Sprintf("%s, over %d faults: descriptors %d to %d, threads %d to %d, memory %d to %d KiB",
			p.name, len(p.samples)-1, a.Descriptors, b.Descriptors, a.Threads, b.Threads, a.Memory, b.Memory)
		if b.Goroutines > 0 {
			text += fmt.Sprintf(", goroutines %d to %d", a.Goroutines, b.Goroutines)
		}
		lines = append(lines, text)
	}
	slices.Sort(lines)
	return lines
}
