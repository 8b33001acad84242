package drill

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func start(nodes []int) step {
	return step{"starting " + nodesNamed(nodes), func(_ context.Context, d *drill) error {
		for _, n := range nodes {
			if err := d.startAgent(n); err != nil {
				return err
			}
		}
		return nil
	}}
}

// startEtcds starts the members of etcd, and waits until they serve.
func startEtcds(members int) step {
	return step{fmt.Sprintf("starting etcd, members: %d", members), func(ctx context.Context, d *drill) error {
		for i := range members {
			if err := d.startEtcd(i); err != nil {
				return err
			}
		}
		return d.await(ctx, func() bool {
			for _, p := range d.etcds {
				if !p.announced {
					return false
				}
			}
			return true
		})
	}}
}

func restartEtcd(member int) step {
	return step{fmt.Sprintf("member %d of etcd starts again", member), func(_ context.Context, d *drill) error {
		return d.startEtcd(member)
	}}
}

func signalAgent(sig syscall.Signal, node int) step {
	return step{fmt.Sprintf("%s to the agent of node %d", unix.SignalName(sig), node), func(_ context.Context, d *drill) error {
		return d.signal(d.agents[node], sig)
	}}
}

func cut(node int) step {
	return step{fmt.Sprintf("node %d is cut off", node), func(_ context.Context, d *drill) error { return d.cut(node, false) }}
}

func heal(node int) step {
	return step{fmt.Sprintf("node %d is back", node), func(_ context.Context, d *drill) error { return d.heal(node) }}
}

// pause lets time pass.
func pause(length time.Duration) step {
	return step{fmt.Sprintf("%v pass", length), func(ctx context.Context, d *drill) error { return d.pass(ctx, length) }}
}

// finish lets the job end successfully, and then ends etcd. The user's own program ends by itself.
func finish() step {
	return step{"the job ends, every agent with exit code 0", func(ctx context.Context, d *drill) error {
		d.finished = time.Now()
		agents := running(d.agents)
		for _, p := range agents {
			p.mayEnd = true
		}
		for _, k := range d.live(anywhere) { // the user's own program does not read it
			_ = k.say(finishLine) // it may have ended, since another was to finish
		}
		if err := d.awaitEnd(ctx, agents...); err != nil {
			return err
		}
		etcds := running(d.etcds)
		for _, p := range etcds {
			if err := d.signal(p, syscall.SIGTERM); err != nil {
				return err
			}
		}
		return d.awaitEnd(ctx, etcds...)
	}}
}
