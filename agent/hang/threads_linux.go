package hang

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/progress"
	"github.com/gorun/gorun/launcher/proc"
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
			if tid == w.Pid {
				doing = "it was " + t.doing()
			}
		}
		if more := len(threads) - maxThreads; more > 0 {
			fmt.Fprintf(&b, "  and %d more threads\n", more)
		}
	}
	return b.String(), doing
}

// isSuspended reports whether a signal or a debugger has stopped a process.
func isSuspended(pid int) bool {
	p, ok := proc.Read(pid)
	return ok && p.Suspended
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
	isStopped             bool
}

func readThread(dir string) thread {
	t := thread{
		name: strings.TrimSpace(entry(dir, "comm")), waits: strings.TrimSpace(entry(dir, "wchan")),
		syscall: strings.TrimSpace(entry(dir, "syscall")), stack: entry(dir, "stack"),
	}
	for line := range strings.Lines(entry(dir, "status")) {
		if name, value, _ := strings.Cut(line, ":"); name == "State" {
			t.state = strings.TrimSpace(value)
		}
	}
	t.isStopped = strings.HasPrefix(t.state, "T") || strings.HasPrefix(t.state, "t")
	return t
}

// doing says what a thread is doing: "in the system call futex".
func (t *thread) doing() string {
	call, _, _ := strings.Cut(t.syscall, " ")
	number, err := strconv.Atoi(call)
	switch {
	case t.isStopped:
		return "stopped by a signal (state " + t.state + ")"
	case strings.HasPrefix(t.state, "R"):
		return "running (state " + t.state + ")"
	case err == nil && number >= 0:
		return "in the system call " + cmp.Or(callNames[number], call)
	case t.waits != "" && t.waits != "0":
		return "in the kernel's " + t.waits + " (state " + t.state + ")"
	case t.state != "":
		return "in state " + t.state
	}
	return "gone"
}

// dumped returns the stacks that a worker writes itself, if it has created the file for them and handles SIGUSR1. The signal is sent to the
// first process of the worker that handles it.
func dumped(ctx context.Context, w Worker) (string, error) {
	path := progress.Stacks(w.File)
	info, err := os.Lstat(path)
	if err != nil {
		return "", nil
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	processes := processesOf(w)
	at := slices.IndexFunc(processes, func(pid int) bool { return handles(pid, syscall.SIGUSR1) })
	if at < 0 {
		return "", errors.New("it has created the file for its stacks, and does not handle the signal")
	}
	if isSuspended(processes[at]) {
		return "", errors.New("it is suspended")
	}
	before := info.Size()
	if err := syscall.Kill(processes[at], syscall.SIGUSR1); err != nil {
		return "", err
	}
	return growth(ctx, path, before)
}

const (
	dumpTimeout = 2 * time.Second        // for the first byte
	dumpPause   = 100 * time.Millisecond // without another one, after which it is whole
)

// growth returns what is appended to a file.
func growth(ctx context.Context, path string, from int64) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	again := time.NewTicker(dumpPause)
	defer again.Stop()
	for size := from; ; {
		select {
		case <-again.C:
		case <-ctx.Done():
			if size <= from {
				return "", fmt.Errorf("it has written nothing within %v", dumpTimeout)
			}
			return tail(path, from), nil
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return "", err
		case info.Size() > from && info.Size() == size:
			return tail(path, from), nil
		}
		size = info.Size()
	}
}

// tail reads a file from an offset.
func tail(path string, from int64) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, _ := io.ReadAll(io.NewSectionReader(f, from, maxFile/2))
	return string(text)
}

// handles reports whether a process has a handler for a signal.
func handles(pid int, sig syscall.Signal) bool {
	for line := range strings.Lines(entry(fmt.Sprintf("/proc/%d", pid), "status")) {
		if name, value, _ := strings.Cut(line, ":"); name == "SigCgt" {
			mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err == nil && mask&(1<<(uint(sig)-1)) != 0
		}
	}
	return false
}

type program int

const (
	programOther program = iota
	programPython
	programGo
)

// programOf says in what language a process is written.
func programOf(pid int) program {
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	target, err := os.Readlink(exe)
	if err != nil {
		return programOther
	}
	if strings.HasPrefix(filepath.Base(target), "python") {
		return programPython
	}
	if _, err := buildinfo.ReadFile(exe); err == nil {
		return programGo
	}
	return programOther
}

var errNoPySpy = errors.New("there is no py-spy")

const pySpyTimeout = 3 * time.Second

// pySpy returns what py-spy says of a process, if it is installed.
func pySpy(ctx context.Context, pid int) (string, error) {
	path, err := exec.LookPath("py-spy")
	if err != nil {
		return "", errNoPySpy
	}
	ctx, cancel := context.WithTimeout(ctx, pySpyTimeout)
	defer cancel()
	args := []string{"dump", "--pid", strconv.Itoa(pid)}
	if isSuspended(pid) {
		args = append(args, "--nonblocking") // it would wait until the process has stopped for it
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second // for what it may have started
	out, problem := limited{max: maxFile / 2}, limited{max: 1024}
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(problem.Bytes()))
	}
	return out.String(), nil
}

// limited keeps the first bytes of what is written.
type limited struct {
	bytes.Buffer
	max int
}

func (l *limited) Write(b []byte) (int, error) {
	_, _ = l.Buffer.Write(b[:max(0, min(len(b), l.max-l.Len()))]) // to memory: cannot fail
	return len(b), nil
}

// AwaitEnd waits for the end of a process, until the timeout.
func AwaitEnd(ctx context.Context, pid int, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	again := time.NewTicker(dumpPause / 5)
	defer again.Stop()
	for {
		if p, ok := proc.Read(pid); !ok || p.Zombie {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}
