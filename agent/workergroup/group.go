package workergroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/rounds"
	"github.com/gorun/gorun/launcher"
)

// A WorkerGang is a gang of one worker. *launcher.Gang is one.
type WorkerGang interface {
	SetPrefix(index, rank int, prefix string)
	Pids() []int
	Exits() <-chan death.Death
	Stop(syscall.Signal)
	Interrupted(time.Duration)
	Kill()
	Signal(syscall.Signal)
	Suspend()
	Resume(passed time.Duration)
	IsBlocked() bool
	Fail(index int, why string, quit bool)
}

// Config is what a Group needs.
type Config struct {
	Dir     string                                                   // of the workers' sockets: nobody else may enter it
	Timeout time.Duration                                            // in which a worker that lives on has to enter the next round
	Start   func(context.Context, launcher.Spec) (WorkerGang, error) // of a Spec with one worker
	Warn    func(msg string)
}

// A Group is the workers of a node.
type Group struct {
	Config

	mu       sync.Mutex
	started  int       // how many workers, in all rounds
	workers  []*worker // by local rank: the last that was started
	gang     *Gang     // of the last round; nil: there was none
	stopping bool      // all workers are being stopped

	round    int           // the number of the last round
	died     []death.Death // in it
	why      string        // the round is over, as Revoke says; empty: Revoke has given no reason
	notified bool          // the workers know that it is over

	suspended bool
	timer     *time.Timer // for the first deadline of a worker; nil: there was none yet
}

// New returns a Group without workers.
func New(c Config) *Group { return &Group{Config: c} }

// Start is launcher.Start for the workers of a round: it sends the round to the survivors, and starts the others. If it fails, the
// survivors still run.
func (g *Group) Start(ctx context.Context, spec launcher.Spec) (*Gang, error) {
	round, err := roundOf(spec.Workers[0])
	if err != nil {
		return nil, err
	}
	survivors, err := g.survivors(ctx, len(spec.Workers))
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	died := g.died
	g.round, g.died, g.why, g.notified = round, nil, "", false
	each := make([]rounds.Round, len(survivors))
	for i, w := range survivors {
		each[i] = rounds.Round{Round: round, Env: workerVariables(spec.Workers[i].Env), Died: died}
		if w != nil {
			w.rank = spec.Workers[i].Rank
			w.gang.SetPrefix(0, w.rank, spec.Workers[i].Prefix)
			w.enter(each[i])
		}
	}
	g.mu.Unlock()
	started, err := g.startMissing(ctx, spec, survivors, each)
	if err != nil {
		return nil, err
	}
	return g.begin(started, survivors), nil
}

// survivors returns the survivors among n workers, by local rank, and nil for each of the others. It first stops the others, and waits until
// nothing is left of them.
func (g *Group) survivors(ctx context.Context, n int) ([]*worker, error) {
	survivors := make([]*worker, n)
	g.mu.Lock()
	workers := slices.Clone(g.workers)
	g.mu.Unlock()
	for i, w := range workers {
		if w == nil {
			continue
		}
		if i < n && w.isSurvivor() {
			survivors[i] = w
			continue
		}
		g.mu.Lock()
		w.stop(syscall.SIGTERM)
		g.mu.Unlock()
		select {
		case <-w.gone:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return survivors, nil
}

// startMissing starts a worker for each local rank that no survivor has. If it cannot start one, it ends those that it has started.
func (g *Group) startMissing(ctx context.Context, spec launcher.Spec, survivors []*worker, each []rounds.Round) ([]*worker, error) {
	all, errs := slices.Clone(survivors), make([]error, len(survivors))
	var starting sync.WaitGroup
	for i := range all {
		if all[i] == nil {
			starting.Go(func() { all[i], errs[i] = g.startWorker(ctx, spec, i, each[i]) })
		}
	}
	starting.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return all, nil
	}
	for i, w := range all {
		if w != nil && survivors[i] == nil {
			w.gang.Kill()
			<-w.gone
		}
	}
	return nil, errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}

// startWorker starts one worker, in a gang of its own.
func (g *Group) startWorker(ctx context.Context, spec launcher.Spec, local int, r rounds.Round) (*worker, error) {
	g.mu.Lock()
	g.started++
	name := fmt.Sprintf("%d.%d", local, g.started)
	g.mu.Unlock()
	w := &worker{group: g, local: local, host: spec.Host, rank: spec.Workers[local].Rank, gone: make(chan struct{}), started: make(chan struct{})}
	var err error
	if w.socket, err = listen(g.Dir, name, w, r); err != nil {
		return nil, err
	}
	own := spec.Workers[local]
	own.Env = setVariable(own.Env, socketVariable, w.socket.path)
	spec.Workers, spec.FirstLocalRank = []launcher.WorkerSpec{own}, local
	if local > 0 {
		spec.Stdin = nil
	}
	defer close(w.started)
	if w.gang, err = g.Config.Start(ctx, spec); err != nil {
		w.socket.close()
		return nil, err
	}
	w.pid = w.gang.Pids()[0]
	go w.follow()
	return w, nil
}

// begin returns the gang of the present round. Its workers may have ended since they were started.
func (g *Group) begin(workers, survivors []*worker) *Gang {
	gang := &Gang{
		group: g, round: g.round, exits: make(chan death.Death, len(workers)), revocations: make(chan death.Death, len(workers)),
		revoked: make(chan struct{}),
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.workers, g.gang, g.stopping = workers, gang, false
	for i, w := range workers {
		if w.exit != nil {
			gang.exits <- *w.exit
		}
		if w.revoked != nil {
			gang.revocations <- *w.revoked
		}
		if g.notified && survivors[i] == nil {
			w.socket.send(g.over())
		}
	}
	g.closeIfEnded()
	return gang
}

// deliverRevocation passes on a worker's revocation of the present round, unless the gang of that round is still being started: then begin
// does so.
func (g *Group) deliverRevocation(w *worker) {
	if g.gang != nil && g.gang.round == g.round {
		g.gang.revocations <- *w.revoked
	}
}

// over is the document that says that the present round is over.
func (g *Group) over() rounds.Round {
	return rounds.Round{Round: g.round, Over: true, Why: g.why, Died: g.died}
}

// exited records the exit of a worker, and notifies the others at once: they may be waiting for it.
func (g *Group) exited(w *worker, x death.Death) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x.Rank = w.rank
	x.Stopped = x.Stopped && !w.failed
	if x.Failed() && w.fault != "" {
		x.Cause, x.Why = death.Fault, w.fault
	}
	w.exit = &x
	w.failIfEndedEarly()
	if g.gang != nil && slices.Contains(g.workers, w) {
		g.gang.exits <- x
	}
	if x.Failed() && !x.Stopped && !g.stopping {
		g.notifyOver("", x)
	}
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
	for _, w := range g.workers {
		if w != nil && w.exit == nil {
			w.socket.send(g.over())
		}
	}
}

// schedule sets the timer. It is called when a deadline has changed.
func (g *Group) schedule() {
	if g.timer != nil {
		g.timer.Stop()
	}
	var first time.Time
	for _, w := range g.workers {
		if w == nil || w.isEnding() {
			continue
		}
		if at := w.deadline(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() && !g.suspended {
		g.timer = time.AfterFunc(time.Until(first), g.checkAnswers)
	}
}

// checkAnswers kills the workers that have not entered a round in time.
func (g *Group) checkAnswers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.suspended {
		return
	}
	for _, w := range g.workers {
		if w == nil || w.isEnding() {
			continue
		}
		if fault := w.check(time.Now(), w.socket.isConnected(), g.Timeout); fault != "" {
			w.fail("%s", fault)
		}
	}
	g.schedule()
}

// left records that nothing is left of a worker.
func (g *Group) left(w *worker) {
	w.socket.close()
	g.mu.Lock()
	defer g.mu.Unlock()
	close(w.gone)
	g.closeIfEnded()
}

// closeIfEnded closes the channels of the present gang: revoked if only survivors are left of it, and exits if nothing is.
func (g *Group) closeIfEnded() {
	gang := g.gang
	if gang == nil {
		return
	}
	left, survivors := 0, 0
	for _, w := range g.workers {
		if !w.isGone() {
			left++
			if w.survives {
				survivors++
			}
		}
	}
	if gang.isRevoked && left == survivors {
		gang.closeRevoked()
	}
	if left == 0 {
		gang.closeExits()
	}
}
