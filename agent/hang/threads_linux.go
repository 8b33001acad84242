package hang

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/env/proc"
)

const (
	maxThreads = 64      // of a process that are described
	maxEntry   = 8 << 10 // bytes of a file in /proc
)

// threadsOf describes the threads of the processes of a worker, as /proc has them, and says what its main thread is doing.
func threadsOf(w Worker) (text, doing string) {
	var b strings.Builder
	for _, p := range processesOf(w) {
		dir := fmt.Sprintf("/proc/%d", p)
		fmt.Fprintf(&b, "process %d: %s\n", p, strings.TrimSpace(strings.ReplaceAll(entry(dir, "cmdline"), "\x00", " ")))
		threads := threadIDs(dir)
		for _, tid := range threads[:min(len(threads), maxThreads)] {
			t := readThread(filepath.Join(dir, "task", strconv.Itoa(tid)))
			fmt.Fprintf(&b, "  thread %d (%s): %s\n", tid, t.name, t.doing())
			for line := range strings.Lines(t.stack) {
				fmt.Fprintf(&b, "    %s\n", strings.TrimSpace(line))
			}
		}
		if more := len(threads) - maxThreads; more > 0 {
			fmt.Fprintf(&b, "  and %d more threads\n", more)
		}
	}
	if _, main := mainThread(w); main.state != "" {
		doing = "it was " + main.doing()
	}
	return b.String(), doing
}

// mainThread returns the main thread of the process that does the work of a worker: the first that does not only wait for another one.
func mainThread(w Worker) (pid int, main thread) {
	for i, p := range processesOf(w) {
		t := readThread(fmt.Sprintf("/proc/%d/task/%d", p, p))
		if i == 0 {
			pid, main = p, t
		}
		if call, _ := t.call(); call != "wait4" && call != "waitid" && t.state != "" {
			return p, t
		}
	}
	return pid, main
}

// activityOf says what a worker does, as far as the kernel knows. It looks twice, with the time still in between: one that sleeps again and
// again may be looking for another's file.
func activityOf(ctx context.Context, w Worker, still time.Duration) activity {
	was, before := mainThread(w)
	select {
	case <-time.After(still):
	case <-ctx.Done():
		return waits
	}
	pid, now := mainThread(w)
	switch {
	case before.isStopped && now.isStopped:
		return idles
	case was != pid || before.syscall != now.syscall || before.switches != now.switches && !now.runs() || before.runs() != now.runs():
		return waits
	case now.runs():
		return runs
	case strings.HasPrefix(now.state, "D") || now.sleeps():
		return idles
	}
	return waits
}

func threadIDs(dir string) (ids []int) {
	names, _ := os.ReadDir(filepath.Join(dir, "task")) // what can be read is used
	for _, n := range names {
		if id, err := strconv.Atoi(n.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// entry is a file in /proc, as far as it can be read.
func entry(dir, name string) string {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, _ := io.ReadAll(io.LimitReader(f, maxEntry))
	return string(text)
}

// A thread is what /proc says of one. Most of it is secret, unless the thread belongs to this user, or to another and this process is root.
type thread struct {
	name, state           string
	waits, syscall, stack string // where in the kernel; the number and arguments of the system call; functions of the kernel
	switches              string // how many times it has begun to wait
	isStopped             bool
}

func readThread(dir string) thread {
	t := thread{
		name: strings.TrimSpace(entry(dir, "comm")), waits: strings.TrimSpace(entry(dir, "wchan")),
		syscall: strings.TrimSpace(entry(dir, "syscall")), stack: entry(dir, "stack"),
	}
	status := entry(dir, "status")
	t.state, t.switches = proc.Field(status, "State:"), proc.Field(status, "voluntary_ctxt_switches:")
	t.isStopped = strings.HasPrefix(t.state, "T") || strings.HasPrefix(t.state, "t")
	return t
}

// call returns the name of the system call in which a thread is, or its number, and its arguments; empty: it is in none, or that is not known.
func (t *thread) call() (name string, args []string) {
	fields := strings.Fields(t.syscall)
	if len(fields) == 0 {
		return "", nil
	}
	number, err := strconv.Atoi(fields[0])
	if err != nil || number < 0 {
		return "", nil
	}
	return cmp.Or(callNames[number], fields[0]), append(fields[1:], "", "")
}

func (t *thread) runs() bool { return strings.HasPrefix(t.state, "R") }

// sleeps reports whether it waits for a time to pass, or for a file system, and for nothing else. A read may wait for another process.
func (t *thread) sleeps() bool {
	const none = "0x0"
	switch call, args := t.call(); call {
	case "nanosleep", "clock_nanosleep", "fsync", "fdatasync", "pread64", "pwrite64", "stat":
		return true
	case "": // which call it is, is secret
		return strings.Contains(t.waits, "nanosleep")
	case "select", "pselect6": // for no file: so do older Pythons
		return args[0] == none
	case "poll", "ppoll":
		return args[1] == none
	}
	return false
}

// doing says what a thread is doing: "in the system call futex".
func (t *thread) doing() string {
	call, _ := t.call()
	switch {
	case t.isStopped:
		return "stopped by a signal (state " + t.state + ")"
	case t.runs():
		return "running (state " + t.state + ")"
	case call != "":
		return "in the system call " + call
	case t.waits != "" && t.waits != "0":
		return "in the kernel's " + t.waits + " (state " + t.state + ")"
	case t.state != "":
		return "in state " + t.state
	}
	return "gone"
}
