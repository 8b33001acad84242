// Package drill breaks jobs on purpose, to check that gorun does what it promises.
//
// A [Scenario] is a job on several agents of this machine, and one fault. [Run] starts the agents as a user would, with
// gorun's command line. The workers are built in: they compute together continuously, and report to the drill over a socket.
// The drill judges and measures only what workers report and how processes end; it does not query agents. It reads in their logs why the job
// has used a restart, and, if the workers run the user's own program, when a node has joined a round.
//
//	scenario ─ steps ─▶ drill ── testbed ─ starts, kills ─▶ agents, etcds
//	                      │                                   │ start
//	                      └─ checks ─▶ observer ◀─ report ─ workers
//
// In every scenario, this must hold in addition to what its steps wait for:
//
//  1. A rank starts once in a round, and all workers of a round know the same world, master and restarts.
//  2. A node has workers of one round at a time: the old ones are dead when new ones start, or are in the new round.
//  3. Nodes that are in two rounds, one after the other, keep their order.
//  4. Sums are right, and the state that workers keep does not go backwards as long as one of them lives.
//  5. With --on-failure=replace, the fault ends only those workers that it hits; the others keep their ranks, unless nodes come
//     or go, and learn who has died of what. With restart, all are started again.
//  6. Agents end when they are meant to, with exit code 0, and not before. All of them name the same root cause.
//  7. The job has used as many restarts as the fault costs.
//  8. Nothing is left in the end: no process, no port, no file.
package drill

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// A drill is one run of a scenario. It belongs to one goroutine; others post events to it.
type drill struct {
	*testbed
	*observer
	name   string // for people
	begun  time.Time
	steady func() // ends what makes etcd slow; nil: nothing does
}

func newDrill(o Options, sc *Scenario, p Policy, dir string) (*drill, error) {
	d := &drill{observer: newObserver(o.Nproc, p), name: fmt.Sprintf("%s, %s", sc.Name, p), begun: time.Now()}
	oomKills := machineOOMKills()
	d.memoryWasShort = func() bool { return machineOOMKills() != oomKills }
	var err error
	d.testbed, err = newTestbed(o, sc.job, p, dir, d.observer)
	return d, err
}

// play performs the steps of a scenario, between a beginning and an end that all scenarios share.
func (d *drill) play(ctx context.Context, sc *Scenario) error {
	for _, step := range sc.allSteps(d.options) {
		if d.options.Verbose {
			d.options.log("%s: %5.2f s: %s", d.name, time.Since(d.begun).Seconds(), step.what)
		}
		if err := step.do(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// allSteps are the steps of a scenario, with those that all scenarios share.
func (sc *Scenario) allSteps(o Options) (steps []step) {
	if sc.job.etcd > 0 {
		steps = append(steps, startEtcd(upTo(0, sc.job.etcd)...), serving())
	}
	first := upTo(0, sc.job.begin(o.Nodes))
	steps = append(steps, start(first...), together(first), computeOn())
	if o.Program != nil {
		steps = append(steps, pause(o.After))
	}
	steps = append(steps, sc.steps(o.Nodes)...)
	if sc.restarts >= 0 {
		steps = append(steps, restarts(sc.restarts, sc.restarts))
	}
	return append(steps, computeOn(), finish(), oneRootCause())
}

// await takes events until the condition is met, or something has gone wrong.
func (d *drill) await(ctx context.Context, is func() bool) error {
	err := d.takeUntil(ctx, func() bool { return d.wrong != nil || is() || d.wrong != nil }) // is may call fail
	switch {
	case d.wrong != nil:
		return d.wrong
	case err != nil:
		return fmt.Errorf("%w: %s", err, d.describe())
	default:
		return nil
	}
}

// pass takes events for a while.
func (d *drill) pass(ctx context.Context, length time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	err := d.takeUntil(limited, func() bool { return d.wrong != nil })
	if d.wrong == nil && ctx.Err() == nil { // the time has passed
		return nil
	}
	return cmp.Or(d.wrong, err)
}

// computeOn waits until all workers of the newest round have computed once more.
func (d *drill) computeOn(ctx context.Context) error {
	nodes, then := d.nodesOf(d.newest()), d.computations()
	return d.await(ctx, func() bool { return d.together(nodes) && d.haveComputedSince(then) })
}

// awaitEnd waits until processes have ended well.
func (d *drill) awaitEnd(ctx context.Context, list ...*process) error {
	for _, p := range list {
		if err := d.await(ctx, func() bool { return p.ended }); err != nil {
			return err
		}
		if !p.cmd.ProcessState.Success() {
			return fmt.Errorf("%s has ended: %v", p.name, p.cmd.ProcessState)
		}
	}
	return nil
}
