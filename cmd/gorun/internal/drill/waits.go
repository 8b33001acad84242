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
	return step{"computing together: " + numbered("node", nodes), func(ctx context.Context, d *drill) error {
		if err := d.await(ctx, func() bool { return d.together(nodes) }); err != nil {
			return err
		}
		return d.checkRound()
	}}
}

// serving waits until all members of etcd serve.
func serving() step {
	return until("etcd serves", func(d *drill) bool {
		for _, p := range d.etcds {
			if !p.announced {
				return false
			}
		}
		return true
	})
}

// agentGone waits until the agent of a node has ended, and its workers too.
func agentGone(node int) step {
	return until(fmt.Sprintf("node %d has ended", node), func(d *drill) bool {
		return d.agents[node].ended && len(d.live(node)) == 0
	})
}

// memberGone waits until a member of etcd has ended.
func memberGone(member int) step {
	return until(membersNamed([]int{member})+" has ended", func(d *drill) bool { return d.etcds[member].ended })
}

// again does what together does, in a round after the fault. The measured time ends then.
func again(nodes []int) step {
	return step{"computing again: " + numbered("node", nodes), func(ctx context.Context, d *drill) error {
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
	return until(fmt.Sprintf("node %d has no workers", node), func(d *drill) bool { return len(d.live(node)) == 0 })
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

// announced waits until the agent of a node has said that it hosts the rendezvous, or that it is a spare.
func announced(what string, node int) step {
	return until(fmt.Sprintf("node %d %s", node, what), func(d *drill) bool { return d.agents[node].announced })
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
	var end time.Time
	var then computations
	return undisturbedUntil(fmt.Sprintf("for %v nothing happens", length), func(d *drill) (bool, error) {
		switch now := time.Now(); {
		case end.IsZero():
			end = now.Add(length)
		case then == nil && now.After(end):
			then = d.computations()
		}
		return then != nil && d.haveComputedSince(then), nil
	})
}
