package launcher

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Guard is the guard of a gang, and the way to it and to the workers that it is to start.
type Guard struct {
	process *os.Process
	pid     int
	since   uint64     // its start, in clock ticks
	socket  *os.File   // to it
	pipes   []*os.File // from the workers, by local rank: stdout, stderr
	taken   atomic.Bool
}

// StartGuard starts the guard of a gang of so many workers. To do so ahead, while the rest of Spec is being found out,
// saves the time that a process takes to start; Spec.Guard is where it goes.
func StartGuard(workers int) (*Guard, error) {
	var theirs []*os.File // its stdin, socket, and by worker: stdout, stderr
	g := &Guard{}
	fail := func(err error) (*Guard, error) {
		closeAll(g.pipes)
		closeAll(theirs)
		if g.socket != nil {
			_ = g.socket.Close()
		}
		return nil, fmt.Errorf("cannot start the guard of the workers: %w", err)
	}
	devnull, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fail(err)
	}
	theirs = append(theirs, devnull)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	_ = unix.SetNonblock(pair[0], true) // a fresh descriptor: cannot fail
	g.socket = os.NewFile(uintptr(pair[0]), "guard")
	theirs = append(theirs, os.NewFile(uintptr(pair[1]), "agent"))
	for range 2 * workers {
		// Not os.Pipe: the workers must find their end in blocking mode.
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return fail(err)
		}
		_ = unix.SetNonblock(fds[0], true)
		g.pipes = append(g.pipes, os.NewFile(uintptr(fds[0]), "worker"))
		theirs = append(theirs, os.NewFile(uintptr(fds[1]), "worker"))
	}
	g.process, err = startGuard(func() (*os.Process, error) {
		files := append([]*os.File{devnull, devnull, os.Stderr}, theirs[1:]...)
		return os.StartProcess("/proc/self/exe", []string{guardName}, &os.ProcAttr{
			Env: runtimeSettings(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	})
	if err != nil {
		return fail(err)
	}
	closeAll(theirs)
	g.pid = g.process.Pid
	self, _ := readProcess(g.pid) // it has not been waited for, so it is there
	g.since = self.startTicks
	return g, nil
}

// Close ends a guard that no Start has taken.
func (g *Guard) Close() {
	if g.taken.CompareAndSwap(false, true) {
		closeAll(g.pipes)
		g.end()
		g.release()
		_ = g.socket.Close()
	}
}

// take reports whether a gang of so many workers may have the guard, which is then the gang's.
func (g *Guard) take(workers int) bool {
	return g != nil && len(g.pipes) == 2*workers && g.taken.CompareAndSwap(false, true)
}

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
