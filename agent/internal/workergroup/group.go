package workergroup

import (
	"cmp"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
)

// A Gang is the processes of the workers. *launcher.Gang is one.
type Gang interface {
	SetPrefix(local, rank int, prefix string)
	Stop(sig syscall.Signal, locals ...int)
	Kill(locals ...int)
	Fail(local int, why string, dump syscall.Signal)
}

// Config is what a Group needs.
type Config struct {
	Dir     string        // of the workers' sockets: nobody else may enter it; empty: there are none, so no worker survives
	Timeout time.Duration // in which a worker that lives on has to enter the next round
	Warn    func(msg string)
}

// A Group is the workers of a node.
type Group struct {
	Config
	messages chan Message
	events   []Event // that nobody has taken

	gang     Gang      // nil: none was started
	started  int       // how many workers, in all rounds
	workers  []*worker // of the round whose workers run, by local rank
	next     []*worker // of the round that begins; nil: none does
	stopping bool      // all workers are being stopped

	revoked  bool // the round of workers is
	reported Event

	round    int           // the number of the last round that has begun
	died     []death.Death // in it
	why      string        // the round is over, as Revoke says; empty: Revoke has given no reason
	notified bool          // the workers know that it is over
}

// An Event is what the agent learns of a round. It has one field set.
type Event struct {
	Exit       *death.Death // of every worker that ends before the next round begins; and in the next round, if that had been sent to it
	Revocation *death.Death // a worker revokes the round, and has not ended
	Revoked    bool         // nothing is left but survivors, since Revoke
	Gone       bool         // nothing is left of any worker
}

// New returns a Group without workers.
func New(c Config) *Group { return &Group{Config: c, messages: make(chan Message)} }

// Messages delivers what Handle is to be called with.
func (g *Group) Messages() <-chan Message { return g.messages }

// Take returns the events since it was last called.
func (g *Group) Take() []Event {
	events := g.events
	g.events = nil
	return events
}

// newest returns the last workers that were started, or are being started.
func (g *Group) newest() []*worker {
	if g.next != nil {
		return g.next
	}
	return g.workers
}

// over is the document that says that the present round is over.
func (g *Group) over() env.Round {
	return env.Round{Round: g.round, Over: true, Why: g.why, Died: g.died}
}

// notifyOver tells the workers that the round is over, why, and who has died, unless they know.
func (g *Group) notifyOver(why string, died ...death.Death) {
	known := len(g.died)
	for _, d := range died {
		if !slices.ContainsFunc(g.died, func(known death.Death) bool { return known.Rank == d.Rank }) {
			g.died = append(g.died, d)
		}
	}
	if g.notified && len(g.died) == known {
		return
	}
	g.notified, g.why = true, cmp.Or(g.why, why)
	for _, w := range g.newest() {
		if w.exit == nil {
			w.send(g.over())
		}
	}
}

// Revoke ends the round, but not the workers that take part. They learn why, and which workers of this and other
// nodes have died, and wait for another round. Revoke stops the others with sig, as Stop does.
func (g *Group) Revoke(sig syscall.Signal, why string, died []death.Death) {
	g.revoked = true
	g.notifyOver(why, died...)
	for _, w := range g.workers {
		w.survives = w.canSurvive()
	}
	g.stop(sig, func(w *worker) bool { return !w.survives && !w.failed }) // one that has failed is being killed
	g.checkEnd()
}

// Notify tells the survivors that more workers of other nodes have died.
func (g *Group) Notify(died []death.Death) {
	if len(died) > 0 {
		g.notifyOver("", died...)
	}
}

// Stop asks all workers to end, as launcher.Gang's Stop does.
func (g *Group) Stop(sig syscall.Signal) {
	g.stopping = true
	g.stop(sig, func(*worker) bool { return true })
}

func (g *Group) stop(sig syscall.Signal, which func(*worker) bool) {
	locals := g.locals(func(w *worker) bool { return which(w) && !w.stopped && !w.gone })
	for _, local := range locals {
		g.workers[local].stopped = true
	}
	if len(locals) > 0 {
		g.gang.Stop(sig, locals...)
	}
}

// Kill ends all workers now.
func (g *Group) Kill() {
	g.stopping = true
	g.gang.Kill(g.locals(func(w *worker) bool { return !w.gone })...)
}

// locals returns the local ranks of some workers, which is not nil.
func (g *Group) locals(which func(*worker) bool) []int {
	list := []int{}
	for _, w := range g.workers {
		if which(w) {
			list = append(list, w.local)
		}
	}
	return list
}

// Fail kills one worker, by its local rank, as launcher.Gang's Fail does, and all processes that it has started, and
// tells the other workers.
func (g *Group) Fail(local int, why string, now time.Time) {
	w := g.workers[local]
	w.failed = true
	g.gang.Fail(local, why, 0)
	if w.left != nil || !slices.Contains(g.newest(), w) {
		return
	}
	g.notifyOver("", w.death(now, -int(syscall.SIGKILL), death.Hang, why))
}

// Exited records the exit of a worker, and notifies the others at once: they may be waiting for it. If it has not
// failed, what it has sent says whether it was still needed, and is awaited.
func (g *Group) Exited(x death.Death, now time.Time) {
	w := g.newest()[x.LocalRank]
	if x.LocalRank < len(g.workers) && g.workers[x.LocalRank].left == nil && g.workers[x.LocalRank].pid == x.Pid {
		w = g.workers[x.LocalRank] // and another is being started in its place
	}
	if w.left != nil {
		return // x is of one whose start has failed, as NotEntered has said
	}
	if w.left = &x; x.Failed() || !w.reading {
		w.exited()
		return
	}
	w.leftAt = now
}

// Ended records that nothing is left of a worker.
func (g *Group) Ended(local int) {
	w := g.newest()[local]
	if local < len(g.workers) && !g.workers[local].ended {
		w = g.workers[local]
	}
	w.ended = true
	w.finish()
}

// Over records that nothing is left of the gang. All exits have come before.
func (g *Group) Over() {
	for _, w := range g.workers {
		w.ended = true
		w.finish()
	}
}

// Deadline is when Check has to be called; zero: there is no such time.
func (g *Group) Deadline() (first time.Time) {
	for _, w := range g.workers {
		if at := w.deadline(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Check kills the workers that have not entered a round in time.
func (g *Group) Check(now time.Time) {
	for _, w := range g.workers {
		w.check(now)
	}
}

// Extend moves all deadlines by the time for which the job was suspended.
func (g *Group) Extend(passed time.Duration) {
	for _, w := range g.workers {
		w.extend(passed)
	}
}

// checkEnd says once if only survivors are left of a round that was revoked, and once if nothing is.
func (g *Group) checkEnd() {
	left, survivors := 0, 0
	for _, w := range g.workers {
		if !w.gone {
			left++
			if w.survives {
				survivors++
			}
		}
	}
	if g.revoked && left == survivors && !g.reported.Revoked {
		g.reported.Revoked = true
		g.events = append(g.events, Event{Revoked: true})
	}
	if left == 0 && !g.reported.Gone {
		g.reported.Gone = true
		g.events = append(g.events, Event{Gone: true})
	}
}
