package launcher

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher/guard"
	"github.com/gorun/gorun/launcher/proc"
)

// Gang is the running workers of one Spec.
type Gang struct {
	spec      Spec
	guard     *guard.Guard
	workers   []worker
	exits     chan death.Death // has room for all, so that nobody needs to listen
	stopping  atomic.Bool      // a stop or kill has been sent
	grace     atomic.Int64     // Spec.Grace, or that of Interrupted
	interrupt atomic.Bool      // Interrupted has been called
	suspended chan struct{}    // has room for one; the guard has suspended all
	followed  chan struct{}    // closed when the guard has nothing more to tell
	clock     clock
}

// worker is the agent's view of a worker.
type worker struct {
	pid      int
	rank     atomic.Int64
	out, err *stream
	reported bool                   // its death has been delivered
	hung     atomic.Pointer[string] // why gorun has killed it, if that is because it made no progress
}

// Pids returns the workers' process ids, in the order of Spec.Workers. They may have ended.
func (g *Gang) Pids() []int {
	pids := make([]int, len(g.workers))
	for i := range g.workers {
		pids[i] = g.workers[i].pid
	}
	return pids
}

// IsBlocked reports whether output of a worker waits because the console, or a file, does not take it: then the worker may have to wait too.
func (g *Gang) IsBlocked() bool {
	for i := range g.workers {
		if g.workers[i].out.isBlocked.Load() || g.workers[i].err.isBlocked.Load() {
			return true
		}
	}
	return false
}

// Exits delivers every worker's death once, in the order in which they happened. It is closed when all have
// been delivered, every descendant is gone and all output is in Spec.Spool. It never blocks the gang.
func (g *Gang) Exits() <-chan death.Death { return g.exits }

// Stop asks the gang to end: every process in the session of the workers gets sig, and when these have ended, or
// Spec.Grace is over (see Interrupted), Kill follows. Stop does not wait. Only the first Stop counts.
func (g *Gang) Stop(sig syscall.Signal) {
	g.stopping.Store(true)
	for i := range g.workers {
		g.workers[i].out.stopping()
		g.workers[i].err.stopping()
	}
	g.sendStop(sig)
}

func (g *Gang) sendStop(sig syscall.Signal) {
	grace := time.Duration(g.grace.Load())
	g.guard.Stop(sig, grace, g.interrupt.Load())
	g.answerIn(grace)
}

// Interrupted says that the agent has got a signal that ends the job, and changes Spec.Grace. If a Stop is under way, the gang has as
// long from now on. If not, the one that follows is for that signal, of which the workers may know (see Spec.StepSignals).
func (g *Gang) Interrupted(grace time.Duration) {
	g.interrupt.Store(true)
	if was := g.grace.Swap(int64(grace)); was != int64(grace) && g.stopping.Load() {
		g.sendStop(syscall.SIGTERM) // which nobody gets a second time
	}
}

// Kill sends SIGKILL to the workers and all in their session now, also while a Stop is in its grace period. What has left the session, or
// ignores SIGTERM, has half a second to end, and then gets SIGKILL too. Kill does not wait.
func (g *Gang) Kill() {
	g.stopping.Store(true)
	g.guard.Kill()
	g.answerIn(0)
}

// Signal passes sig to the workers, and not to their helpers, without stopping them. It does not wait.
func (g *Gang) Signal(sig syscall.Signal) {
	if sig == syscall.SIGWINCH {
		g.resize()
	}
	g.guard.Signal(sig)
}

// SetPrefix changes what stands before the lines of one worker, by its index in Spec.Workers, which has another rank from now on.
func (g *Gang) SetPrefix(index, rank int, prefix string) {
	p := &prefixes{paint(prefix, rank, g.spec.Color), []byte(prefix)}
	g.workers[index].rank.Store(int64(rank))
	g.workers[index].out.prefix.Store(p)
	g.workers[index].err.prefix.Store(p)
}

// Fail kills one worker, by its index in Spec.Workers, that does not do as it should. Its death says why, and counts as its own failure,
// also if a Stop follows. If quit is true, the worker gets SIGQUIT first, on which programs print their stacks, and a second to end.
// Fail does not wait.
func (g *Gang) Fail(index int, why string, quit bool) {
	g.workers[index].hung.CompareAndSwap(nil, &why)
	if !quit {
		g.killWorker(index, syscall.SIGKILL)
		return
	}
	g.killWorker(index, syscall.SIGQUIT)
	time.AfterFunc(stacksTimeout, func() { g.killWorker(index, syscall.SIGKILL) })
}

// stacksTimeout is how long a worker may take to print its stacks.
const stacksTimeout = time.Second

// killWorker sends sig to a worker, unless it has ended.
func (g *Gang) killWorker(index int, sig syscall.Signal) {
	if p, ok := proc.Read(g.workers[index].pid); ok && !p.Zombie && p.Parent == g.guard.Pid() { // and not another process with its pid
		_ = p.Signal(sig) // fails if it has ended
	}
}

// run follows the gang to its end. It is the gang's only goroutine besides the readers of the pipes.
func (g *Gang) run() {
	defer close(g.exits)
	guardLost := !g.follow()
	close(g.followed)
	if guardLost {
		g.endGuard()
	}
	g.reportRest(guardLost)
	for i := range g.workers {
		for _, s := range []*stream{g.workers[i].out, g.workers[i].err} {
			s.sync()
			s.close()
		}
	}
	g.release()
}

// follow reports exits until the guard says that nothing is left. It returns false if the guard dies first.
func (g *Gang) follow() bool {
	for {
		e, err := g.guard.Next()
		if err != nil {
			return false
		}
		switch {
		case e.Exit != nil && e.Exit.Worker < len(g.workers):
			g.report(e.Exit.Worker, deathOf(e.Exit))
		case e.Denied != nil:
			g.warnDenied(e.Denied)
		case e.Stuck != nil:
			g.warnStuck(e.Stuck)
		case e.Suspended:
			select {
			case g.suspended <- struct{}{}:
			default:
			}
		case e.Left != nil:
			g.warnLeft(e.Left)
		case e.Warning != "":
			g.spec.warn("%s", e.Warning)
		case e.Gone:
			return true
		}
	}
}

// reportRest reports the workers whose end the guard has not reported, because it died first or may not kill them.
func (g *Gang) reportRest(guardLost bool) {
	for i := range g.workers {
		if !g.workers[i].reported {
			d := death.Death{ExitCode: -int(syscall.SIGKILL), At: time.Now(), Stopped: g.stopping.Load()}
			if guardLost {
				d.Cause = death.GuardLost
			}
			g.report(i, d)
		}
	}
}

// deathOf returns what the guard says of a death.
func deathOf(e *guard.Exit) death.Death {
	d := death.Death{
		At: time.Unix(0, e.At), Stopped: e.Stopped, Interrupt: syscall.Signal(e.Interrupt), OutOfMemory: e.OutOfMemory,
	}
	if status := syscall.WaitStatus(e.Status); status.Signaled() {
		d.ExitCode = -int(status.Signal())
	} else {
		d.ExitCode = status.ExitStatus()
	}
	return d
}

// report passes on everything that the worker has written, and then delivers its death. If gorun has sent it a signal, nobody else did.
func (g *Gang) report(index int, d death.Death) {
	w := &g.workers[index]
	w.reported = true
	w.out.sync()
	d.Rank, d.LocalRank, d.Host, d.Pid = int(w.rank.Load()), g.spec.localRank(index), g.spec.Host, w.pid
	d.Stderr = w.err.sync()
	if why := w.hung.Load(); why != nil && d.Failed() {
		d.Cause, d.Why, d.OutOfMemory, d.Stopped = death.Hang, *why, false, false
	}
	g.exits <- d
}

// endGuard ends a guard that has died, or does not answer, and its workers.
func (g *Gang) endGuard() {
	denied, stuck := g.guard.End(g.spec.killTimeout())
	g.warnDenied(denied)
	g.warnStuck(stuck)
}

func (g *Gang) warnStuck(pids []int) {
	if len(pids) == 0 {
		return
	}
	names := make([]string, len(pids))
	for i, pid := range pids {
		names[i] = strconv.Itoa(pid)
		if index := slices.Index(g.Pids(), pid); index >= 0 {
			names[i] += fmt.Sprintf(" (rank %d)", g.workers[index].rank.Load())
		}
	}
	g.spec.warn("SIGKILL did not end process %s within %v: it is frozen, or blocked in the kernel by a device or file system that does not answer; "+
		"gorun ends without it", strings.Join(names, ", "), g.spec.killTimeout())
}

// warnLeft says of which ranks processes were killed that outlived them: n is guard.Event.Left.
func (g *Gang) warnLeft(n map[int]int) {
	if len(g.workers) == 1 { // then all are of that one
		n = map[int]int{0: n[0] + n[-1]}
	}
	var parts []string
	for _, index := range slices.Sorted(maps.Keys(n)) {
		of := "a rank that is not known"
		if index >= 0 && index < len(g.workers) {
			of = fmt.Sprintf("rank %d", g.workers[index].rank.Load())
		}
		parts = append(parts, fmt.Sprintf("%d of %s", n[index], of))
	}
	g.spec.warn("processes that outlived their workers were killed: %s", strings.Join(parts, ", "))
}

func (g *Gang) warnDenied(pids []int) {
	if len(pids) > 0 {
		slices.Sort(pids)
		g.spec.warn("processes %v still run: the workers started them as another user, and only that user can end them", pids)
	}
}
