// Package proc lists the processes of this machine, and ends them. It also finds the cgroups of a process, and lists the descriptors that a
// forked child must not keep. On systems other than Linux there are none.
package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Process is what /proc says about a process.
type Process struct {
	Pid, Parent    int
	Group, Session int
	Zombie         bool   // dead and not yet reaped
	Suspended      bool   // by a signal, or a tracer
	Traced         bool   // suspended by a tracer
	StartTicks     uint64 // since boot
}

// parseStat reads the contents of /proc/<pid>/task/<pid>/stat.
func parseStat(b []byte) (Process, bool) {
	// "pid (name) state ppid pgrp session ...": the name may hold anything, also parentheses and blanks.
	first, last := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if first < 1 || last < first {
		return Process{}, false
	}
	fields := strings.Fields(string(b[last+1:]))
	if len(fields) < 20 {
		return Process{}, false
	}
	var p Process
	var errs [6]error
	p.Pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(b[:first])))
	p.Parent, errs[1] = strconv.Atoi(fields[1])
	p.Group, errs[2] = strconv.Atoi(fields[2])
	p.Session, errs[3] = strconv.Atoi(fields[3])
	p.StartTicks, errs[4] = strconv.ParseUint(fields[19], 10, 64)
	threads, err := strconv.Atoi(fields[17])
	errs[5] = err
	// The main thread alone may have ended, which looks like a zombie but for the number of threads.
	p.Zombie = fields[0] == "Z" && threads <= 1
	p.Traced = fields[0] == "t"
	p.Suspended = fields[0] == "T" || p.Traced
	for _, err := range errs {
		if err != nil {
			return Process{}, false
		}
	}
	return p, true
}

// Read returns false if there is no such process.
func Read(pid int) (Process, bool) { return read(strconv.Itoa(pid)) }

// read takes half as long as [os.ReadFile] of /proc/<pid>/stat, for which the kernel adds up what all threads have used.
func read(pid string) (Process, bool) {
	fd, err := syscall.Open("/proc/"+pid+"/task/"+pid+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, false
	}
	var buf [1 << 10]byte // 52 numbers and a name
	n, err := syscall.Read(fd, buf[:])
	_ = syscall.Close(fd) // it was only read
	if err != nil {
		return Process{}, false
	}
	return parseStat(buf[:n])
}

// All lists all processes in /proc. It is not a snapshot: it may miss processes that start or end meanwhile.
func All() []Process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1) // what could be read is used
	var all []Process
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		if p, ok := read(name); ok {
			all = append(all, p)
		}
	}
	return all
}

// Descendants returns the processes for which root is true and all processes below them, parents before
// children: if they are killed in this order, no parent can replace a child.
func Descendants(all []Process, root func(Process) bool) []Process {
	children := map[int][]Process{}
	var found []Process
	taken := map[int]bool{}
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
		if root(p) {
			found = append(found, p)
			taken[p.Pid] = true
		}
	}
	for i := 0; i < len(found); i++ {
		for _, child := range children[found[i].Pid] {
			if !taken[child.Pid] { // pids may be reused while /proc is read, and make a ring
				found = append(found, child)
				taken[child.Pid] = true
			}
		}
	}
	return found
}

// Signal sends sig to the process, and never to another one that now has its pid. The error is os.ErrProcessDone if
// the process has ended.
func (p Process) Signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(p.Pid) // it holds on to the process that has this pid now
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if now, ok := Read(p.Pid); !ok || now.Zombie || now.StartTicks != p.StartTicks {
		return os.ErrProcessDone
	}
	return handle.Signal(sig)
}

// KillAll sends SIGKILL to the live processes in list. It returns how many got it, and the pids of those that it may not kill.
func KillAll(list []Process) (killed int, denied []int) {
	for _, p := range list {
		if p.Zombie {
			continue
		}
		switch err := p.Signal(syscall.SIGKILL); {
		case err == nil:
			killed++
		case errors.Is(err, syscall.EPERM):
			denied = append(denied, p.Pid)
		}
	}
	return killed, denied
}

// Reap collects a child if it is dead, and reports whether it did.
func Reap(pid int) bool {
	for {
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return got == pid
		}
	}
}

// Environ returns the environment with which the process was started, as far as it may be read.
func (p Process) Environ() []string {
	env, _ := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/environ") // it may have ended
	return strings.Split(string(env), "\x00")
}

// Ignores reports whether the process ignores sig.
func (p Process) Ignores(sig syscall.Signal) bool { return p.has("SigIgn:", sig) }

// Handles reports whether the process has a handler for sig.
func (p Process) Handles(sig syscall.Signal) bool { return p.has("SigCgt:", sig) }

// has reports whether a signal is in one of the sets of the process.
func (p Process) has(set string, sig syscall.Signal) bool {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/status") // it may have ended
	mask, err := strconv.ParseUint(Field(string(status), set), 16, 64)
	return err == nil && mask>>(sig-1)&1 == 1
}
