package guard

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
)

// A unit is workers that end together, and what they have started. All workers of a gang are one unit, or each of
// them is, until several are stopped together (see Request.Apart).
//
// What a worker has started is found by the chain of its parents; or, if that has been cut, by the process group of
// the worker, or by the variable in its environment that only this worker has. A process that has left all of these
// belongs to no worker that is known. It is ended with the unit whose workers are the last to end.
type unit struct {
	gang    *gang
	workers []*worker
	phase   phase
	ends    time.Time      // of the time of this phase; zero: there is no limit
	signal  syscall.Signal // to stop with; 0: the workers have got it
	left    map[int]int    // pid of a process that has outlived its worker and that this guard has ended -> its number, or unknownWorker
	gone    bool           // nothing is left, but what is given up
}

type worker struct {
	unit  *unit
	index int
	pid   int // 0: it could not be started
	mark  string
	ended bool
}

// unite makes one unit of those that run of the workers with these numbers, or of all if the list is nil. It returns
// it, and without any a new one, of which nothing is left.
func (g *gang) unite(indexes []int) *unit {
	all := &unit{gang: g, left: map[int]int{}}
	for _, u := range g.units {
		if u.phase == running && (indexes == nil || u.has(indexes)) {
			all.add(u.workers...)
			u.workers, u.gone = nil, true
		}
	}
	g.units = append(g.units, all)
	return all
}

func (u *unit) add(workers ...*worker) {
	for _, w := range workers {
		w.unit = u
	}
	u.workers = append(u.workers, workers...)
}

func (u *unit) has(indexes []int) bool {
	return slices.ContainsFunc(u.workers, func(w *worker) bool { return slices.Contains(indexes, w.index) })
}

// living returns the workers that have not been reaped.
func (u *unit) living() []*worker {
	return slices.DeleteFunc(slices.Clone(u.workers), func(w *worker) bool { return w.ended })
}

// runs reports whether nobody has asked the unit to end, and workers are left.
func (u *unit) runs() bool { return u.phase == running && len(u.living()) > 0 }

// forgetEnded reports the units of which nothing is left.
func (g *gang) forgetEnded() {
	g.units = slices.DeleteFunc(g.units, func(u *unit) bool {
		if !u.gone {
			return false
		}
		if left := u.countLeft(); len(left) > 0 {
			g.send(Event{Left: left})
		}
		var ended []int
		for _, w := range u.workers {
			ended = append(ended, w.index)
			delete(g.workers, w.pid)
			delete(g.marks, w.mark)
		}
		if ended != nil {
			g.send(Event{Ended: ended})
		}
		return true
	})
}

// isSpared reports whether a process belongs to no unit.
func (g *gang) isSpared(p proc.Process) bool {
	return g.spared[p.Pid] == p.StartTicks || g.preloading[p.Group]
}

// orphans returns the children of this process that are no living workers.
func (g *gang) orphans() (orphans []proc.Process) {
	if g.childless {
		return nil
	}
	for _, p := range children() {
		if w, ok := g.workers[p.Pid]; (!ok || w.ended) && !g.isSpared(p) {
			orphans = append(orphans, p)
		}
	}
	return orphans
}

// children returns the children of this process. The kernel's lists of them cannot miss one, since only this
// goroutine reaps. A kernel without these lists makes it take long.
func children() (list []proc.Process) {
	const tasks = "/proc/self/task/"
	threads, _ := os.ReadDir(tasks)
	for _, t := range threads {
		pids, err := os.ReadFile(tasks + t.Name() + "/children")
		if err != nil {
			if _, err := os.Stat(tasks + t.Name()); err != nil { // the thread has ended
				continue
			}
			self := os.Getpid()
			return slices.DeleteFunc(proc.All(), func(p proc.Process) bool { return p.Parent != self })
		}
		for field := range strings.FieldsSeq(string(pids)) {
			pid, _ := strconv.Atoi(field)
			if p, ok := proc.Read(pid); ok {
				list = append(list, p)
			}
		}
	}
	return list
}

// isEmpty reports whether nothing is left of the unit. An orphan that has just ended may have left others, which are
// seen when it is reaped.
func (u *unit) isEmpty() bool {
	if len(u.living()) > 0 {
		return false
	}
	orphans := u.gang.orphans()
	return len(u.own(orphans)) == 0 && !slices.ContainsFunc(orphans, func(p proc.Process) bool { return p.Zombie })
}

// own returns those of a list that belong to the unit. In the list, parents come before children.
func (u *unit) own(list []proc.Process) (own []proc.Process) {
	if len(list) == 0 || len(u.gang.units) == 1 {
		return list
	}
	takesUnknown := u.isLast()
	units := map[int]*unit{} // by pid
	for _, p := range list {
		of := units[p.Parent]
		if of == nil {
			if w := u.gang.workerOf(p); w != nil {
				of = w.unit
			}
		}
		units[p.Pid] = of
		if of == u || of == nil && takesUnknown {
			own = append(own, p)
		}
	}
	return own
}

// isLast reports whether no other unit has living workers; of several units without any, one is the last.
func (u *unit) isLast() bool {
	units := u.gang.units
	if slices.ContainsFunc(units, func(other *unit) bool { return other != u && len(other.living()) > 0 }) {
		return false
	}
	return len(u.living()) > 0 || units[len(units)-1] == u
}

// workerOf returns the worker that p is, or whose group or mark it has inherited; nil: it is not known.
func (g *gang) workerOf(p proc.Process) *worker {
	for _, pid := range []int{p.Pid, p.Group} {
		if w := g.workers[pid]; w != nil {
			return w
		}
	}
	for _, v := range p.Environ() {
		if w := g.marks[v]; w != nil {
			return w
		}
	}
	return nil
}

// descendants returns what is left of the unit.
func (u *unit) descendants() []proc.Process { return u.own(u.gang.descendants()) }

func (g *gang) descendants() []proc.Process {
	self := os.Getpid()
	return proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == self && !g.isSpared(p) })
}
