package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/gorun/gorun/launcher/topology"
)

// files returns how many files precede the request.
func (r *Request) files() int {
	n := 2 * len(r.Workers)
	if r.Stdin {
		n++
	}
	return n
}

// begin begins a gang, unless there is one, and starts the workers of a Request, when the interpreter is ready if there is one.
func (g *gang) begin(m message) {
	if g.idle {
		g.idle, g.several = false, false
		g.killTimeout, g.apart, g.finished = m.Start.KillTimeout, m.Start.Apart, !m.Start.Apart
		g.step.begin(m.Start.StepSignals)
	}
	if m.Start.Preloaded {
		g.pending = &m
		g.askInterpreter()
		return
	}
	g.start(m, nil)
}

// start starts the workers of a Request in their order, all or none: none if there is a failure already. It closes the files.
func (g *gang) start(m message, failure *NotStarted) {
	if len(g.units) == 0 {
		g.oom.begin()
	}
	req, pipes := m.Start, m.files
	g.several = g.several || len(req.Workers) > 1
	var stdin uintptr // the guard's own, /dev/null
	if req.Stdin {
		stdin, pipes = uintptr(pipes[0]), pipes[1:]
	}
	programs := make([][]string, len(req.Programs))
	for i, argv := range req.Programs {
		programs[i] = unpack(argv)
	}
	shared := unpack(req.Env)
	all := g.unite([]int{})
	var warnings []string
	pids := map[int]int{}
	for i, w := range req.Workers {
		env := slices.Concat(shared, unpack(w.Env))
		next := &worker{index: w.Worker, mark: markOf(env), ended: failure != nil}
		all.add(next)
		if failure != nil {
			continue
		}
		pid, warning, err := g.startWorker(req, programs[w.Program], w, &syscall.ProcAttr{
			Env:   env,
			Files: []uintptr{stdin, uintptr(pipes[2*i]), uintptr(pipes[2*i+1])},
			Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		})
		if err != nil {
			next.ended, failure = true, notStarted(w.Worker, err)
			continue
		}
		stdin = 0
		if warning != "" {
			warnings = append(warnings, warning)
		}
		next.pid, g.workers[pid], g.marks[next.mark], pids[w.Worker] = pid, next, next, pid
		g.order.add(pid)
	}
	for _, fd := range m.files {
		_ = syscall.Close(fd)
	}
	g.childless = g.childless && len(pids) == 0
	switch {
	case failure != nil:
		g.send(Event{NotStarted: failure})
		all.transition(killAsked)
		return
	case len(pids) > 0:
		g.send(Event{Started: pids})
	}
	if len(warnings) > 0 {
		g.send(Event{Warning: warnings[0]})
	}
	if g.apart {
		for _, w := range all.workers {
			g.unite([]int{}).add(w)
		}
		all.workers, all.gone = nil, true
	}
}

func notStarted(worker int, err error) *NotStarted {
	if not, ok := errors.AsType[*notPreloadedError](err); ok {
		return &NotStarted{Worker: worker, Reason: not.Error(), NotPreloaded: true}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return &NotStarted{Worker: worker, Errno: int(errno)}
	}
	return &NotStarted{Worker: worker, Reason: err.Error()}
}

// markOf returns the variable, with its value, that only one worker has in its environment: its socket, or else its
// rank. Empty: there is none.
func markOf(env []string) string {
	for _, name := range []string{"GORUN_ROUND_SOCKET=", "RANK="} {
		if at := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, name) }); at >= 0 {
			return env[at]
		}
	}
	return ""
}

// startWorker starts a worker from the calling thread, to which the goroutine must be locked, bound to its
// processors and memory. warning says what the system did not allow.
func (g *gang) startWorker(req *Request, argv []string, w Worker, attr *syscall.ProcAttr) (pid int, warning string, err error) {
	if len(w.CPUs) > 0 || len(w.MemNodes) > 0 {
		restore, err := topology.Apply(w.CPUs, w.MemNodes)
		if err != nil {
			return 0, "", err
		}
		defer restore()
		if len(w.MemNodes) > 0 && !topology.CanBindMemory() {
			warning = fmt.Sprintf("the system does not allow binding memory to NUMA nodes %v: the workers run without it", w.MemNodes)
		}
	}
	if req.Preloaded {
		if pid, err = g.interpreter.fork(argv, w, attr); err == nil || req.Strict {
			return pid, warning, err
		}
		req.Preloaded, warning = false, err.Error()+"; the workers start without it" // nor do those that follow
	}
	pid, err = syscall.ForkExec(argv[0], argv, attr)
	return pid, warning, err
}
