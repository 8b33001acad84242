package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

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
	n := len(spec.Workers)
	g := &Gang{
		spec: spec, workers: make([]atomic.Pointer[worker], n),
		exits: make(chan death.Death, n), ended: make(chan int, n),
		guards: make(chan *guard.Guard, 1), suspended: make(chan struct{}, 1),
		clock: clock{limits: map[*worker]time.Time{}},
	}
	g.grace.Store(int64(spec.Grace))
	go g.run()
	all := make([]int, n)
	for local := range all {
		all[local] = local
	}
	err := g.launch(ctx, &spec, all)
	if err != nil || !spec.Apart {
		g.finish()
	}
	if err == nil {
		return g, nil
	}
	if its := g.guard.Load(); its != nil {
		its.Interrupt()
	}
	for range g.exits {
	}
	return nil, err
}

// Replace starts other workers in the place of those with these local ranks, as spec says, when nothing is left of
// them. If one of the others cannot start, none does. Spec.Apart must be set. If ctx ends first, they are killed, and
// Replace does not wait for that.
func (g *Gang) Replace(ctx context.Context, spec Spec, locals []int) error {
	for _, local := range locals {
		select {
		case <-g.workers[local].Load().gone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return g.launch(ctx, &spec, locals)
}

// launch starts the workers with these local ranks.
func (g *Gang) launch(ctx context.Context, spec *Spec, locals []int) error {
	workers, pipes, err := prepare(spec, locals)
	if err != nil {
		return err
	}
	var stdin *os.File
	if locals[0] == 0 {
		stdin = spec.Stdin
	}
	if err = g.add(workers); err == nil {
		g.resize()
		g.guard.Load().Begin(newRequest(spec, locals), stdin, pipes)
	} else {
		closeAll(pipes)
	}
	for _, w := range workers { // while the guard starts them
		go w.out.run()
		go w.err.run()
	}
	if err != nil {
		for _, w := range workers {
			w.out.close()
			w.err.close()
		}
		return err
	}
	select {
	case e := <-workers[0].answer:
		if e.NotStarted == nil {
			return nil // or the guard is lost: their deaths say so
		}
		err = startError(spec, e.NotStarted)
	case <-ctx.Done():
		for _, w := range workers {
			w.unwanted.Store(true)
		}
		g.guard.Load().Kill(locals) // when it has started them
		return context.Cause(ctx)
	}
	for _, w := range workers {
		<-w.gone
	}
	return err
}

// add makes workers those of the gang. If there is no guard, or not any more, they get a new one.
func (g *Gang) add(workers []*worker) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.finished {
		return errors.New("launcher: a gang that has been finished gets no more workers")
	}
	if !g.guarded {
		its, err := g.spec.takeGuard()
		if err != nil {
			return err
		}
		g.guard.Store(its)
		g.guards <- its
		g.guarded = true
	}
	for _, w := range workers {
		g.workers[w.local].Store(w)
	}
	return nil
}

// prepare opens the pipes or pseudo terminals of workers, and connects them with the console and the log files, whose
// directories it creates. It returns the workers' ends, which the guard has yet to get: stdout and stderr of the
// first, of the second, ...
func prepare(spec *Spec, locals []int) (workers []*worker, pipes []*os.File, err error) {
	ours, theirs, err := openPipes(2 * len(locals))
	if errors.Is(err, unix.EMFILE) {
		err = fmt.Errorf("%d workers need more open files than this process may have (ulimit -Hn): %w", len(locals), err)
	}
	if err != nil {
		return nil, nil, err
	}
	spec.openPtys(locals, ours, theirs)
	streams := newOutput(spec, locals...).streams(ours)
	answer := make(chan guard.Event, 1)
	for i, local := range locals {
		w := &worker{local: local, out: streams[2*i], err: streams[2*i+1], answer: answer, gone: make(chan struct{})}
		w.rank.Store(int64(spec.Workers[local].Rank))
		workers = append(workers, w)
	}
	return workers, theirs, nil
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
	if s.TempDir != "" {
		g.Keep(s.TempDir)
	}
	if err := s.Preload.Start(g, s.Argv, func(msg string) { s.warn("%s", msg) }); err != nil {
		_ = g.Release()
		return nil, err
	}
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

func newRequest(spec *Spec, locals []int) guard.Request {
	req := guard.Request{KillTimeout: spec.killTimeout(), Apart: spec.Apart}
	if spec.Preload != nil {
		req.Preloaded, req.Strict = true, spec.Preload.Strict
	}
	for _, sig := range spec.StepSignals {
		req.StepSignals = append(req.StepSignals, int(sig))
	}
	shared := sharedEnv(spec.Workers)
	req.Env = guard.Pack(shared)
	index := map[string]int{} // in Programs, by packed argv
	for _, local := range locals {
		w, packed := spec.Workers[local], guard.Pack(spec.argv(local))
		n, ok := index[string(packed)]
		if !ok {
			n = len(req.Programs)
			index[string(packed)] = n
			req.Programs = append(req.Programs, packed)
		}
		req.Workers = append(req.Workers, guard.Worker{Worker: local, Program: n, Env: guard.Pack(w.Env[len(shared):]), CPUs: w.CPUs, MemNodes: w.MemNodes})
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
	path, local := spec.argv(failure.Worker)[0], failure.Worker
	if failure.NotPreloaded {
		return &PreloadError{failure.Reason}
	}
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

// release returns the guard for the next gang, or ends it if it is the gang's own.
func (g *Gang) release(its *guard.Guard, lost bool) {
	if its == g.spec.Guard && !lost {
		its.Return()
		return
	}
	if words := its.Release(); words != "" {
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
