package hang

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/progress"
)

// dumpSignals are those on which workers write their stacks: the one of gorun.progress of Python, and the one of programs that do so themselves.
var dumpSignals = []syscall.Signal{progress.StacksSignal, syscall.SIGUSR1}

// dumped returns the stacks that a worker writes itself, if it has created the file for them and handles a signal for that. The signal is
// sent to the first process of the worker that handles it.
func dumped(ctx context.Context, w Worker) (string, error) {
	path := progress.Stacks(w.File)
	info, err := os.Lstat(path)
	if err != nil {
		return "", nil
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	pid, sig := dumper(w)
	if pid == 0 {
		return "", errors.New("it has created the file for its stacks, and does not handle the signal")
	}
	if isSuspended(pid) {
		return "", errors.New("it is suspended")
	}
	before := info.Size()
	if err := syscall.Kill(pid, sig); err != nil {
		return "", err
	}
	return growth(ctx, path, before)
}

// dumper returns the process of a worker that handles one of the signals; 0: there is none.
func dumper(w Worker) (pid int, sig syscall.Signal) {
	processes := processesOf(w)
	for _, sig := range dumpSignals {
		for _, pid := range processes {
			if (proc.Process{Pid: pid}).Handles(sig) {
				return pid, sig
			}
		}
	}
	return 0, 0
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

// programPid returns the first process of a worker of which stacks may be had: a shell may have started it.
func programPid(w Worker) int {
	for _, pid := range processesOf(w) {
		if programOf(pid) != programOther {
			return pid
		}
	}
	return w.Pid
}

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
	var out, problem strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
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
