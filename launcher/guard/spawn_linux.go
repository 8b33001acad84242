package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
)

// start starts the process of a guard.
func start(what purpose) (g *Guard, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot start the guard of the workers: %w", err)
		}
	}()
	devnull, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = devnull.Close() }()
	words := memfd(devnull)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(pair[0], true) // a fresh descriptor: cannot fail
	socket, theirs := os.NewFile(uintptr(pair[0]), "guard"), os.NewFile(uintptr(pair[1]), "agent")
	defer func() { _ = theirs.Close() }()
	process, err := enlist(what, func() (*os.Process, error) {
		return os.StartProcess("/proc/self/exe", []string{argv0}, &os.ProcAttr{
			Env: runtimeSettings(), Files: []*os.File{devnull, devnull, words, theirs}, // socketFD
			Sys: &syscall.SysProcAttr{Setsid: true}})
	})
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	self, _ := proc.Read(process.Pid) // it has not been waited for, so it is there
	return &Guard{process: process, stderr: words, pid: process.Pid, since: self.StartTicks, socket: socket,
		events: json.NewDecoder(socket), commands: json.NewEncoder(socket)}, nil
}

// memfd returns a file for the guard's few messages: why it cannot work, or why it crashed. Unlike a write to this process's
// stderr, a write to it never waits. If the system has no such files, memfd returns instead.
func memfd(instead *os.File) *os.File {
	fd, err := unix.MemfdCreate("guard-stderr", unix.MFD_CLOEXEC)
	if err != nil {
		fd, err = unix.FcntlInt(instead.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		return nil // which the guard finds closed
	}
	return os.NewFile(uintptr(fd), "what the guard says")
}

// growFileTable grows this process's table of open files. The kernel doubles the table when it is full, and in a process
// with several threads all of them then wait milliseconds until no CPU uses the old one.
func growFileTable(files int) {
	const inUse, atFirst = 32, 64
	if files+inUse < atFirst {
		return
	}
	if fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, files+inUse); err == nil { // else it stays slow
		_ = unix.Close(fd)
	}
}

// runtimeSettings returns the variables that the guard gets: only those of the Go runtime.
func runtimeSettings() []string {
	env := []string{}
	for _, name := range []string{"GODEBUG", "GORACE", "GOTRACEBACK"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
