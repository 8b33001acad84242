package launcher

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// process is what /proc/<pid>/stat says of one process.
type process struct {
	pid, ppid  int
	pgid, sid  int
	zombie     bool   // dead and not yet reaped
	startTicks uint64 // since boot
}

// parseStat reads the contents of /proc/<pid>/stat.
func parseStat(b []byte) (process, bool) {
	// "pid (name) state ppid pgrp session ...": the name may hold anything, also parentheses and blanks.
	first, last := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if first < 1 || last < first {
		return process{}, false
	}
	fields := strings.Fields(string(b[last+1:]))
	if len(fields) < 20 {
		return process{}, false
	}
	var p process
	var errs [6]error
	p.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(b[:first])))
	p.ppid, errs[1] = strconv.Atoi(fields[1])
	p.pgid, errs[2] = strconv.Atoi(fields[2])
	p.sid, errs[3] = strconv.Atoi(fields[3])
	p.startTicks, errs[4] = strconv.ParseUint(fields[19], 10, 64)
	threads, err := strconv.Atoi(fields[17])
	errs[5] = err
	// The main thread alone may have ended, which looks like a zombie but for the number of threads.
	p.zombie = fields[0] == "Z" && threads <= 1
	for _, err := range errs {
		if err != nil {
			return process{}, false
		}
	}
	return p, true
}

// readProcess is false if there is no such process.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(b)
}

// processes lists all that /proc shows. It is no snapshot: who comes or goes meanwhile may be missed.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1) // what could be read is used
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// descendants returns the processes below those that root picks, and these, parents before children: killed
// in this order, no parent gets to replace a child.
func descendants(all []process, root func(process) bool) []process {
	children := map[int][]process{}
	var found []process
	taken := map[int]bool{}
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
		if root(p) {
			found = append(found, p)
			taken[p.pid] = true
		}
	}
	for i := 0; i < len(found); i++ {
		for _, child := range children[found[i].pid] {
			if !taken[child.pid] { // pids may be reused while /proc is read, and make a ring
				found = append(found, child)
				taken[child.pid] = true
			}
		}
	}
	return found
}
