package launcher

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/launcher/guard"
)

// Gang is the running workers of one Spec, and those that have replaced them.
type Gang struct {
	spec      Spec                     // of the first of them
	workers   []atomic.Pointer[worker] // by local rank
	exits     chan death.Death         // has room for all of the first, so that nobody needs to listen
	ended     chan int                 // as exits, and only if Spec.Apart is set
	grace     atomic.Int64             // Spec.Grace, or that of Interrupted
	interrupt atomic.Bool              // Interrupted has been called
	suspended chan struct{}            // has room for one; the guard has suspended all, or is lost
	clock     clock

	guard    atomic.Pointer[guard.Guard] // of the last workers
	guards   chan *guard.Guard           // has room for the next one; closed when no worker will be replaced any more
	mu       sync.Mutex                  // guards what follows, and makes workers and their guard change together
	guarded  bool                        // guard still guards all workers
	finished bool                        // guards is closed
}

// worker is the agent's view of a worker.
type worker struct {
	local    int
	pid      atomic.Int64 // 0: it has not been started yet
	rank     atomic.Int64
	out, err *stream
	answer   chan guard.Event       // gets that to the request to start it, once; the other workers of the request share it
	stopping atomic.Bool            // a stop or kill has been sent
	unwanted atomic.Bool            // its start has failed, or has been given up: nobody learns of its death
	reported bool                   // its death has been delivered
	gone     chan struct{}          // closed when nothing is left of it
	hasEnded bool                   // that has been noted in the clock, which guards this
	hung     atomic.Pointer[string] // why gorun has killed it, if that is because it made no progress
}

// present returns the last workers that were started, by local rank.
func (g *Gang) present() (all []*worker) {
	for i := range g.workers {
		if w := g.workers[i].Load(); w != nil {
			all = append(all, w)
		}
	}
	return all
}

// these returns the workers with these local ranks, or all if none is named.
func (g *Gang) these(locals []int) []*worker {
	return slices.DeleteFunc(g.present(), func(w *worker) bool { return locals != nil && !slices.Contains(locals, w.local) })
}

func localRanks(workers []*worker) (locals []int) {
	for _, w := range workers {
		locals = append(locals, w.local)
	}
	return locals
}

// Pids returns the workers' process ids, by local rank. They may have ended.
func (g *Gang) Pids() (pids []int) {
	for _, w := range g.present() {
		pids = append(pids, int(w.pid.Load()))
	}
	return pids
}

// IsBlocked reports whether output of a worker waits because the console, or a file, does not take it: then the worker may have to wait too.
func (g *Gang) IsBlocked() bool {
	return slices.ContainsFunc(g.present(), func(w *worker) bool { return w.out.isBlocked.Load() || w.err.isBlocked.Load() })
}

// Exits delivers every worker's death once, in the order in which they happened. It is closed when all have been
// delivered, every descendant is gone and all output is in Spec.Spool; and, if Spec.Apart is set, not before Finish
// is called. If the guard dies, so do all workers, those too that it was to start. Exits never blocks the gang, but a
// gang with Spec.Apart.
func (g *Gang) Exits() <-chan death.Death { return g.exits }

// Ended delivers the local rank of a worker when its death has been delivered and nothing is left of it, if
// Spec.Apart is set. It is never closed.
func (g *Gang) Ended() <-chan int { return g.ended }

// Finish says that no worker will be replaced any more.
func (g *Gang) Finish() {
	g.finish()
	g.guard.Load().Finish()
	g.clock.mu.Lock()
	defer g.clock.mu.Unlock()
	if len(g.clock.limits) == 0 {
		g.guard.Load().AnswerBy(time.Now().Add(guardTimeout))
	}
}

// finish says that no other guard will follow.
func (g *Gang) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.finished {
		close(g.guards)
	}
	g.finished = true
}

// Stop asks workers to end, by their local ranks, or all: every process in their session that they have started gets
// sig, and when these have ended, or Spec.Grace is over (see Interrupted), Kill follows. Stop does not wait. Only the
// first Stop of a worker counts.
func (g *Gang) Stop(sig syscall.Signal, locals ...int) {
	workers := g.these(locals)
	for _, w := range workers {
		w.stopping.Store(true)
		w.out.stopping()
		w.err.stopping()
	}
	g.sendStop(sig, workers)
}

func (g *Gang) sendStop(sig syscall.Signal, workers []*worker) {
	if len(workers) == 0 {
		return
	}
	grace := time.Duration(g.grace.Load())
	g.guard.Load().Stop(localRanks(workers), sig, grace, g.interrupt.Load())
	g.answerIn(workers, grace)
}

// Interrupted says that the agent has got a signal that ends the job, and changes Spec.Grace. If a Stop is under way,
// the workers have as long from now on. If not, the one that follows is for that signal, of which the workers may
// know (see Spec.StepSignals).
func (g *Gang) Interrupted(grace time.Duration) {
	g.interrupt.Store(true)
	if was := g.grace.Swap(int64(grace)); was == int64(grace) {
		return
	}
	stopping := slices.DeleteFunc(g.present(), func(w *worker) bool { return !w.stopping.Load() })
	g.sendStop(syscall.SIGTERM, stopping) // which nobody gets a second time
}

// Kill sends SIGKILL to workers, by their local ranks, or to all, and to all that they have started in their session
// now, also while a Stop is in its grace period. What has left the session, or ignores SIGTERM, has half a second to
// end, and then gets SIGKILL too. Kill does not wait.
func (g *Gang) Kill(locals ...int) {
	workers := g.these(locals)
	if len(workers) == 0 {
		return
	}
	for _, w := range workers {
		w.stopping.Store(true)
	}
	g.guard.Load().Kill(localRanks(workers))
	g.answerIn(workers, 0)
}

// Signal passes sig to the workers, and not to their helpers, without stopping them. It does not wait.
func (g *Gang) Signal(sig syscall.Signal) {
	if sig == syscall.SIGWINCH {
		g.resize()
	}
	g.guard.Load().Signal(sig)
}

// SetPrefix changes what stands before the lines of one worker, which has another rank from now on.
func (g *Gang) SetPrefix(local, rank int, prefix string) {
	w, p := g.workers[local].Load(), &prefixes{paint(prefix, rank, g.spec.Color), []byte(prefix)}
	w.rank.Store(int64(rank))
	w.out.prefix.Store(p)
	w.err.prefix.Store(p)
}

// Fail kills one worker, by its local rank, that does not do as it should. Its death says why, and counts as its own
// failure, also if a Stop follows. If Spec.Apart is set, all that it has started ends with it. If dump is not 0, the
// worker gets this signal first, on which it prints its stacks, and a second to end. Fail does not wait.
func (g *Gang) Fail(local int, why string, dump syscall.Signal) {
	w := g.workers[local].Load()
	w.hung.CompareAndSwap(nil, &why)
	if dump == 0 {
		g.signalWorker(w, syscall.SIGKILL)
		if g.spec.Apart {
			g.Kill(local)
		}
		return
	}
	g.signalWorker(w, dump)
	time.AfterFunc(stacksTimeout, func() { g.signalWorker(w, syscall.SIGKILL) })
}

// stacksTimeout is how long a worker may take to print its stacks.
const stacksTimeout = time.Second

// signalWorker sends sig to a worker, unless it has ended.
func (g *Gang) signalWorker(w *worker, sig syscall.Signal) {
	if p, ok := proc.Read(int(w.pid.Load())); ok && !p.Zombie && p.Parent == g.guard.Load().Pid() { // and not another process with its pid
		_ = p.Signal(sig) // fails if it has ended
	}
}
