package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/gorun/gorun/launcher/topology"
)

// start starts the workers in their order, all or none. It closes files.
func (g *gang) start(req Request, files []int) {
	pipes := files
	var stdin uintptr // the guard's own, /dev/null
	if req.Stdin {
		stdin, pipes = uintptr(files[0]), files[1:]
	}
	programs := make([][]string, len(req.Programs))
	for i, argv := range req.Programs {
		programs[i] = unpack(argv)
	}
	shared := unpack(req.Env)
	pids := make([]int, 0, len(req.Workers))
	var failure *NotStarted
	var warning string
	for i, w := range req.Workers {
		env := slices.Concat(shared, unpack(w.Env))
		pid, warn, err := startWorker(programs[w.Program], w, &syscall.ProcAttr{
			Env:   env,
			Files: []uintptr{stdin, uintptr(pipes[2*i]), uintptr(pipes[2*i+1])},
			Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		})
		if err != nil {
			failure = &NotStarted{Worker: i, Reason: err.Error()}
			if errno, ok := errors.AsType[syscall.Errno](err); ok {
				failure = &NotStarted{Worker: i, Errno: int(errno)}
			}
			break
		}
		stdin = 0
		if warning == "" {
			warning = warn
		}
		pids = append(pids, pid)
		g.workers[pid] = i
		if at := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "RANK=") }); at >= 0 {
			g.ranks[env[at]] = i
		}
		g.order.add(pid)
	}
	for _, fd := range files {
		_ = syscall.Close(fd)
	}
	if failure != nil {
		g.send(Event{NotStarted: failure})
		g.transition(killAsked)
		return
	}
	g.send(Event{Started: pids})
	if warning != "" {
		g.send(Event{Warning: warning})
	}
}

// startWorker starts a worker from the calling thread, to which the goroutine must be locked, bound to its
// processors and memory. warning says what the system did not allow.
func startWorker(argv []string, w Worker, attr *syscall.ProcAttr) (pid int, warning string, err error) {
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
	pid, err = syscall.ForkExec(argv[0], argv, attr)
	return pid, warning, err
}
