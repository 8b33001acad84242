package drill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// together waits until the workers of exactly these nodes compute in one round.
func together(nodes []int) step {
	return step{"computing together: " + nodesNamed(nodes), func(ctx context.Context, d *drill) error {
		if err := d.await(ctx, func() bool { return d.together(nodes) }); err != nil {
			return err
		}
		return d.checkRound()
	}}
}

// again does what together does, in a round after the fault. The measured time ends then.
func again(nodes []int) step {
	return step{"computing again: " + nodesNamed(nodes), func(ctx context.Context, d *drill) error {
		if err := d.await(ctx, func() bool { return d.newest() > d.fault.before && d.together(nodes) }); err != nil {
			return err
		}
		d.fault.recovered = d.last
		if err := d.checkRound(); err != nil || !d.replace || d.options.Program != nil {
			return err
		}
		return d.checkSurvivors()
	}}
}

// computeOn waits until all workers of the newest round have computed once more.
func computeOn() step {
	return step{"they compute on", func(ctx context.Context, d *drill) error { return d.computeOn(ctx) }}
}

// noWorkers waits until a node has no workers.
func noWorkers(node int) step {
	return step{fmt.Sprintf("node %d has no workers", node), func(ctx context.Context, d *drill) error {
		return d.await(ctx, func() bool { return len(d.live(node)) == 0 })
	}}
}

// obeyed waits until a node's agent has ended because of a signal. Its exit code is 0 if no worker failed after losing
// its peers.
func obeyed(sig syscall.Signal, node int) step {
	codes := []int{0, 128 + int(sig)}
	return step{fmt.Sprintf("the agent of node %d ends with exit code %d or %d", node, codes[0], codes[1]), func(ctx context.Context, d *drill) error {
		p := d.agents[node]
		if err := d.await(ctx, func() bool { return p.ended }); err != nil {
			return err
		}
		if !slices.Contains(codes, p.cmd.ProcessState.ExitCode()) {
			return fmt.Errorf("%s has ended: %v", p.name, p.cmd.ProcessState)
		}
		return nil
	}}
}

// hosting waits until a node hosts the rendezvous.
func hosting(node int) step {
	return step{fmt.Sprintf("node %d hosts the rendezvous", node), func(ctx context.Context, d *drill) error {
		return d.await(ctx, func() bool { return d.agents[node].announced })
	}}
}

// waitingNode waits until a node waits for a place in the job.
func waitingNode(node int) step {
	return step{fmt.Sprintf("node %d waits", node), func(ctx context.Context, d *drill) error {
		return d.await(ctx, func() bool { return d.agents[node].announced })
	}}
}

// undisturbedUntil waits for something, while all compute and nothing happens to them.
func undisturbedUntil(what string, is func(*drill) (bool, error)) step {
	return step{what, func(ctx context.Context, d *drill) error {
		newest := d.newest()
		var failed error
		err := d.await(ctx, func() bool {
			if d.newest() != newest || slices.ContainsFunc(d.in(newest), func(k *worker) bool { return !k.busy() }) {
				d.fail(fmt.Errorf("the workers were disturbed: %s", d.describe()))
			}
			so, err := is(d)
			failed = err
			return so || err != nil
		})
		return cmp.Or(err, failed)
	}}
}

// undisturbed lets time pass, and checks that all workers compute during that time and after it.
func undisturbed(length time.Duration) step {
	return step{fmt.Sprintf("for %v nothing happens", length), func(ctx context.Context, d *drill) error {
		round := d.in(d.newest())
		if err := d.pass(ctx, length); err != nil {
			return err
		}
		then := make(map[*worker]int)
		for _, k := range round {
			then[k] = k.computations
		}
		return d.await(ctx, func() bool {
			if len(d.in(d.newest())) != len(round) || d.newest() != round[0].Round || slices.ContainsFunc(round, func(k *worker) bool { return !k.busy() }) {
				d.fail(fmt.Errorf("the workers were disturbed: %s", d.describe()))
			}
			return !slices.ContainsFunc(round, func(k *worker) bool { return k.computations == then[k] })
		})
	}}
}
