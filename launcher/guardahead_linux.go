package launcher

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Guard is the guard of a gang to come, and the way to it.
type Guard struct {
	process *os.Process
	pid     int
	since   uint64   // its start, in clock ticks
	socket  *os.File // to it
	taken   atomic.Bool
}

// StartGuard starts the guard of the next gang, of about so many workers. To do so ahead, while its Spec is being found
// out, saves the time that a process takes to start; Spec.Guard is where it goes.
func StartGuard(workers int) (g *Guard, err error) {
	go makeRoom(4 * workers) // both ends of two pipes each
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
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(pair[0], true) // a fresh descriptor: cannot fail
	socket, theirs := os.NewFile(uintptr(pair[0]), "guard"), os.NewFile(uintptr(pair[1]), "agent")
	defer func() { _ = theirs.Close() }()
	process, err := enlist(func() (*os.Process, error) {
		return os.StartProcess("/proc/self/exe", []string{guardName}, &os.ProcAttr{
			Env: runtimeSettings(), Files: []*os.File{devnull, devnull, os.Stderr, theirs}, // socketFD
			Sys: &syscall.SysProcAttr{Setsid: true}})
	})
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	self, _ := readProcess(process.Pid) // it has not been waited for, so it is there
	return &Guard{process: process, pid: process.Pid, since: self.startTicks, socket: socket}, nil
}

// makeRoom grows this process's table of open files. The kernel doubles it when it is full, and whenever it does so in
// a process of several threads, all of them wait for milliseconds until no other CPU uses the old one.
func makeRoom(files int) {
	const inUse, atFirst = 32, 64
	if files+inUse < atFirst {
		return
	}
	if fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, files+inUse); err == nil { // else it stays slow
		_ = unix.Close(fd)
	}
}

// Close ends a guard that no Start has taken.
func (g *Guard) Close() {
	if g.taken.CompareAndSwap(false, true) {
		g.end()
		g.release()
		_ = g.socket.Close()
	}
}

// take reports whether a gang may have the guard, which is then the gang's.
func (g *Guard) take() bool { return g != nil && g.taken.CompareAndSwap(false, true) }

// end kills the guard, should it still run, and what it guarded.
func (g *Guard) end() (denied []int) {
	_ = g.process.Kill()
	_, _ = g.process.Wait() // only then its children have become ours
	return killOrphans(g.since)
}

// release waits for the end of the guard.
func (g *Guard) release() {
	_, _ = g.process.Wait() // fails if end did it already
	forgetGuard(g.pid)
}

// runtimeSettings are the variables that the guard keeps: those of the Go runtime. What else the agent has is not
// for it.
func runtimeSettings() []string {
	env := []string{}
	for _, name := range []string{"GODEBUG", "GORACE", "GOTRACEBACK", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
