package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher/guard"
)

// Start starts the workers of spec and returns when all of them run their program. If one cannot, the error
// says why (NotFoundError and NotExecutableError for the program itself) and nothing is left running. ctx
// limits only the start: the gang runs until its workers exit or it is stopped.
func Start(ctx context.Context, spec Spec) (*Gang, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	g, pipes, err := newGang(spec)
	if err != nil {
		return nil, err
	}
	if err := g.begin(ctx, pipes); err != nil {
		g.abandon()
		return nil, err
	}
	go g.run()
	return g, nil
}

// newGang opens the workers' pipes or pseudo terminals, and gets a guard for the gang. It returns the workers' ends, which the guard has yet
// to get: stdout and stderr of local rank 0, of local rank 1, ...
func newGang(spec Spec) (g *Gang, pipes []*os.File, err error) {
	ours, theirs, err := openPipes(2 * len(spec.Workers))
	if errors.Is(err, unix.EMFILE) {
		err = fmt.Errorf("%d workers need more open files than this process may have (ulimit -Hn): %w", len(spec.Workers), err)
	}
	if err != nil {
		return nil, nil, err
	}
	spec.openPtys(ours, theirs)
	guard, err := spec.takeGuard()
	if err != nil {
		closeAll(ours)
		closeAll(theirs)
		return nil, nil, err
	}
	g = &Gang{spec: spec, guard: guard, workers: make([]worker, len(spec.Workers)), exits: make(chan death.Death, len(spec.Workers)),
		suspended: make(chan struct{}, 1), followed: make(chan struct{})}
	g.grace.Store(int64(spec.Grace))
	g.attach(ours)
	g.resize()
	return g, theirs, nil
}

// takeGuard returns the guard that was started early, or else a new one.
func (s *Spec) takeGuard() (*guard.Guard, error) {
	if s.Guard.Take() {
		return s.Guard, nil
	}
	g, err := guard.Start(len(s.Workers))
	if err != nil {
		return nil, err
	}
	g.Take()
	return g, nil
}

// openPipes returns the reading ends and the writing ends of n pipes.
func openPipes(n int) (ours, theirs []*os.File, err error) {
	for range n {
		// Not os.Pipe: the workers must find their end in blocking mode.
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, nil, err
		}
		_ = unix.SetNonblock(fds[0], true)
		ours = append(ours, os.NewFile(uintptr(fds[0]), "worker"))
		theirs = append(theirs, os.NewFile(uintptr(fds[1]), "worker"))
	}
	return ours, theirs, nil
}

// attach connects the workers' pipes with the console and the log files. It creates their directories before workers start.
func (g *Gang) attach(pipes []*os.File) {
	streams := newOutput(&g.spec).streams(pipes)
	for i := range g.workers {
		g.workers[i].rank.Store(int64(g.spec.Workers[i].Rank))
		g.workers[i].out, g.workers[i].err = streams[2*i], streams[2*i+1]
	}
}

// listen reads what the workers write.
func (g *Gang) listen() {
	for i := range g.workers {
		go g.workers[i].out.run()
		go g.workers[i].err.run()
	}
}

// begin passes the workers' ends of the pipes and the request to the guard, and waits until the workers run.
func (g *Gang) begin(ctx context.Context, pipes []*os.File) error {
	stopWatching := context.AfterFunc(ctx, g.guard.Interrupt)
	err := g.ask(pipes)
	g.listen() // while the guard starts the workers
	var first guard.Event
	if err == nil {
		first, err = g.guard.Next()
	}
	if !stopWatching() {
		return context.Cause(ctx)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the guard of the workers ended before it started them: %s", cmp.Or(g.guard.Stderr(), "it said nothing"))
	case first.NotStarted != nil:
		if first.NotStarted.Worker >= len(g.workers) {
			return fmt.Errorf("launcher: the guard reports worker %d of %d", first.NotStarted.Worker, len(g.workers))
		}
		return startError(&g.spec, first.NotStarted)
	case len(first.Started) != len(g.workers):
		return fmt.Errorf("launcher: the guard reports %d of %d workers", len(first.Started), len(g.workers))
	}
	for i, pid := range first.Started {
		g.workers[i].pid = pid
	}
	return nil
}

// ask sends the guard what it needs. It closes pipes.
func (g *Gang) ask(pipes []*os.File) error {
	files := pipes
	if g.spec.Stdin != nil {
		files = append([]*os.File{g.spec.Stdin}, pipes...)
	}
	defer closeAll(pipes)
	return g.guard.Begin(newRequest(&g.spec), files)
}

func newRequest(spec *Spec) guard.Request {
	req := guard.Request{KillTimeout: spec.killTimeout(), Stdin: spec.Stdin != nil, TempDir: []byte(spec.TempDir)}
	for _, sig := range spec.StepSignals {
		req.StepSignals = append(req.StepSignals, int(sig))
	}
	shared := sharedEnv(spec.Workers)
	req.Env = guard.Pack(shared)
	index := map[string]int{} // in Programs, by packed argv
	for i, w := range spec.Workers {
		packed := guard.Pack(spec.argv(i))
		n, ok := index[string(packed)]
		if !ok {
			n = len(req.Programs)
			index[string(packed)] = n
			req.Programs = append(req.Programs, packed)
		}
		req.Workers = append(req.Workers, guard.Worker{Program: n, Env: guard.Pack(w.Env[len(shared):]), CPUs: w.CPUs, MemNodes: w.MemNodes})
	}
	return req
}

// sharedEnv returns the common beginning of the environments of all workers: usually all of the agent's environment.
func sharedEnv(workers []WorkerSpec) []string {
	shared := workers[0].Env
	for _, w := range workers[1:] {
		n := 0
		for n < len(shared) && n < len(w.Env) && shared[n] == w.Env[n] {
			n++
		}
		shared = shared[:n]
	}
	return shared
}

// refused are the errors of exec(2) that are about the program.
var refused = []syscall.Errno{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOEXEC, unix.E2BIG}

// limits are hints for when the system refuses a process.
var limits = map[syscall.Errno]string{
	unix.EAGAIN: " (ulimit -u, or pids.max of the control group, allows no more processes)",
	unix.EMFILE: " (ulimit -Hn allows no more open files)",
}

// startError explains why a worker could not be started.
func startError(spec *Spec, failure *guard.NotStarted) error {
	path, local := spec.argv(failure.Worker)[0], spec.localRank(failure.Worker)
	if failure.Reason != "" {
		return fmt.Errorf("cannot start local rank %d: %s", local, failure.Reason)
	}
	errno := syscall.Errno(failure.Errno)
	if _, err := os.Stat(path); errno == unix.ENOTDIR || errno == unix.ENOENT && err != nil {
		return &NotFoundError{Path: path}
	}
	if slices.Contains(refused, errno) {
		return &NotExecutableError{Path: path, Reason: reason(errno, path)}
	}
	return fmt.Errorf("cannot start local rank %d: %w%s", local, errno, limits[errno])
}

// abandon ends a gang whose start failed.
func (g *Gang) abandon() {
	g.endGuard()
	for i := range g.workers {
		g.workers[i].out.close()
		g.workers[i].err.close()
	}
	g.release()
}

// release releases the resources of an ended gang.
func (g *Gang) release() {
	if words := g.guard.Release(); words != "" {
		g.spec.warn("message from the guard of the workers: %s", words)
	}
}

// unread returns how many bytes a pipe holds; of a pseudo terminal, only how many are ready.
func unread(pipe *os.File) (n int, err error) {
	err = control(pipe, func(fd int) error { n, err = unix.IoctlGetInt(fd, unix.TIOCINQ); return err })
	return n, err
}

// isNoexec reports whether the file system of a file is mounted with noexec.
func isNoexec(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0
}

// readNow reads without waiting. It returns 0 if there is nothing to read.
func readNow(pipe *os.File, buf []byte) (n int) {
	_ = control(pipe, func(fd int) (err error) { n, err = unix.Read(fd, buf); return err })
	return max(0, n)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// dieWithUs makes the kernel send sig to a child when the thread that starts it ends.
func dieWithUs(sig syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: sig} }
