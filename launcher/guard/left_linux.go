package guard

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/gorun/gorun/launcher/proc"
)

// killSession kills the workers and what works with them: the processes in their session, but for those that ignore SIGTERM. Such a process
// clears up when the others have ended.
func (g *gang) killSession() {
	working := func() []proc.Process {
		return slices.DeleteFunc(g.sessionProcesses(), func(p proc.Process) bool {
			_, isWorker := g.workers[p.Pid]
			return !isWorker && p.Ignores(syscall.SIGTERM)
		})
	}
	each(working, func(p proc.Process) {
		g.noteLeft(p)
		_ = p.Signal(syscall.SIGKILL) // it may have ended, or be another user's
	})
}

// ask asks processes to end. It does not look for those that start meanwhile, of which there may be no end.
func (g *gang) ask(list []proc.Process) {
	for _, p := range list {
		if !p.Ignores(syscall.SIGTERM) {
			g.noteLeft(p)
		}
		_, _ = p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT) // suspended, it could not act
	}
}

// noteLeft notes that the guard is about to end a process, if that has outlived its worker.
func (g *gang) noteLeft(p proc.Process) {
	if _, noted := g.left[p.Pid]; noted || p.Zombie {
		return
	}
	living := slices.Collect(maps.Values(g.workers))
	worker := g.workerOf(p)
	if slices.Contains(living, worker) || worker == unknownWorker && len(living) > 0 { // then it may be of a living one
		return
	}
	g.left[p.Pid] = worker
}

// workerOf returns the worker whose environment a process has inherited, or unknownWorker.
func (g *gang) workerOf(p proc.Process) int {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.Pid)) // empty if it has ended
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if worker, ok := g.ranks[string(v)]; ok {
			return worker
		}
	}
	return unknownWorker
}

// countLeft returns how many processes the guard has ended that had outlived their worker, by worker.
func (g *gang) countLeft() map[int]int {
	n := map[int]int{}
	for _, worker := range g.left {
		n[worker]++
	}
	return n
}
