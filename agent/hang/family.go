package hang

import (
	"slices"

	"github.com/gorun/gorun/env/proc"
)

// maxProcesses is how many processes of a worker are looked at.
const maxProcesses = 16

// processesOf returns the first processes of a worker: itself, which may be a shell that waits for the program, then those in its session, which
// may be the program, and then those that have left the session.
func processesOf(w Worker) []int {
	all := slices.DeleteFunc(family(w), func(p proc.Process) bool { return p.Pid == w.Pid || p.Zombie })
	self, _ := proc.Read(w.Pid)
	slices.SortStableFunc(all, func(a, b proc.Process) int { return leftSession(a, self) - leftSession(b, self) })
	list := []int{w.Pid}
	for _, p := range all[:min(len(all), maxProcesses-1)] {
		list = append(list, p.Pid)
	}
	return list
}

// leftSession is 1 if p has left the session of worker, and otherwise 0.
func leftSession(p, worker proc.Process) int {
	if p.Session == worker.Session {
		return 0
	}
	return 1
}

// anyTraced reports whether a debugger has stopped a process of one of these workers.
func anyTraced(workers []Worker) bool {
	return slices.ContainsFunc(family(workers...), func(p proc.Process) bool { return p.Traced })
}

// family returns all processes of workers: themselves, and what they have started. If the parent of a process has ended, the environment tells
// whose it is: it has the name of the worker's file.
func family(workers ...Worker) []proc.Process {
	all := proc.All()
	sessions := map[int]bool{}
	isWorker := func(p proc.Process) bool {
		return slices.ContainsFunc(workers, func(w Worker) bool { return p.Pid == w.Pid })
	}
	for _, p := range all {
		sessions[p.Session] = sessions[p.Session] || isWorker(p)
	}
	return proc.Descendants(all, func(p proc.Process) bool {
		return isWorker(p) || sessions[p.Session] && isFrom(p, workers)
	})
}

// isFrom reports whether the environment of a process is that of one of the workers.
func isFrom(p proc.Process, workers []Worker) bool {
	variables := p.Environ()
	return slices.ContainsFunc(workers, func(w Worker) bool { return slices.Contains(variables, "GORUN_PROGRESS_FILE="+w.File) })
}

// isSuspended reports whether a signal or a debugger has stopped a process.
func isSuspended(pid int) bool {
	p, ok := proc.Read(pid)
	return ok && p.Suspended
}
