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
		n, _ := strconv.Atoi(fields[1]) // of the two lines that matter, it is a number
		switch fields[0] {
		case "Threads:":
			r.Threads = n
		case "VmRSS:":
			r.Memory = n
		}
	}
	return r, err
}

// Limits of growth, in addition to what a process had when it was first seen in a job that computes. A busy machine takes more threads, and
// a collector of garbage that is not hurried, more memory; a leak of one in each of many rounds exceeds them all the same.
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
			return fmt.Sprintf("%d %s, where it had %d", c.now, c.what, c.before)
		}
	}
	return ""
}

// A usage is what one process has had.
type usage struct {
	name        string
	first, last Resources
	samples     int
}

// usages are those of all processes, by process ID.
type usages map[int]*usage

// sample reads what the agents, etcds and workers have that live.
func (u usages) sample(s *testbed) {
	add := func(pid int, name string, goroutines int) {
		r, err := readResources(pid)
		if err != nil {
			return // it has just ended
		}
		r.Goroutines = goroutines
		if u[pid] == nil || u[pid].name != name {
			u[pid] = &usage{name: name, first: r}
		}
		u[pid].last = r
		u[pid].samples++
	}
	for _, group := range []map[int]*process{s.agents, s.etcds} {
		for _, p := range group {
			if !p.ended {
				add(p.cmd.Process.Pid, p.name, 0)
			}
		}
	}
	for _, k := range s.world.live(anywhere) {
		add(k.Pid, fmt.Sprintf("a worker of node %d", k.Node), k.goroutines)
	}
}

// check returns an error if a process has too much more than when it was seen first.
func (u usages) check() error {
	for pid, p := range u {
		if more := p.last.exceeds(p.first); more != "" {
			return fmt.Errorf("%s (pid %d) has %s, %d faults ago", p.name, pid, more, p.samples-1)
		}
	}
	return nil
}

// report describes for people the processes that have lived longest, one of each kind.
func (u usages) report() (lines []string) {
	longest := make(map[string]*usage)
	for _, p := range u {
		kind := strings.TrimRight(p.name, "0123456789")
		if l := longest[kind]; l == nil || p.samples > l.samples || p.samples == l.samples && p.name < l.name {
			longest[kind] = p
		}
	}
	for _, p := range longest {
		a, b := p.first, p.last
		text := fmt.Sprintf("%s, over %d faults: descriptors %d to %d, threads %d to %d, memory %d to %d KiB",
			p.name, p.samples-1, a.Descriptors, b.Descriptors, a.Threads, b.Threads, a.Memory, b.Memory)
		if b.Goroutines > 0 {
			text += fmt.Sprintf(", goroutines %d to %d", a.Goroutines, b.Goroutines)
		}
		lines = append(lines, text)
	}
	slices.Sort(lines)
	return lines
}
