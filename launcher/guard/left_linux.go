package guard

import (
	"slices"
	"syscall"

	"github.com/gorun/gorun/env/proc"
)

// killSession kills the workers and what works with them: the processes in their session, but for those that ignore SIGTERM. Such a process
// clears up when the others have ended.
func (u *unit) killSession() {
	working := func() []proc.Process {
		return slices.DeleteFunc(u.sessionProcesses(), func(p proc.Process) bool {
			return u.gang.workers[p.Pid] == nil && p.Ignores(syscall.SIGTERM)
		})
	}
	each(working, func(p proc.Process) {
		u.noteLeft(p)
		_ = p.Signal(syscall.SIGKILL) // it may have ended, or be another user's
	})
}

// ask asks processes to end. It does not look for those that start meanwhile, of which there may be no end.
func (u *unit) ask(list []proc.Process) {
	for _, p := range list {
		if !p.Ignores(syscall.SIGTERM) {
			u.noteLeft(p)
		}
		_, _ = p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT) // suspended, it could not act
	}
}

// noteLeft notes that the guard is about to end a process, if that has outlived its worker.
func (u *unit) noteLeft(p proc.Process) {
	if _, noted := u.left[p.Pid]; noted || p.Zombie {
		return
	}
	w := u.gang.workerOf(p)
	switch {
	case w == nil && len(u.workers) == 1 && !u.gang.several:
		w = u.workers[0]
	case w == nil && len(u.living()) == 0:
		u.left[p.Pid] = unknownWorker
	}
	if w != nil && w.ended {
		u.left[p.Pid] = w.index
	}
}

// countLeft returns how many processes the guard has ended that had outlived their worker, by worker.
func (u *unit) countLeft() map[int]int {
	n := map[int]int{}
	for _, worker := range u.left {
		n[worker]++
	}
	return n
}
