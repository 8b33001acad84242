package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/network"
)

// start starts the agents of nodes, for the first time or again.
func start(nodes ...int) step {
	return act("starting "+numbered("node", nodes), func(d *drill) error { return each(nodes, d.startAgent) })
}

// startEtcd starts members of etcd, for the first time or again.
func startEtcd(members ...int) step {
	return act("starting "+membersNamed(members), func(d *drill) error { return each(members, d.startEtcd) })
}

// startEmptyEtcd starts a member of etcd again, without its data.
func startEmptyEtcd(member int) step {
	return act("etcd loses its data", func(d *drill) error {
		if err := os.RemoveAll(d.dataDir(member)); err != nil {
			return err
		}
		return d.startEtcd(member)
	})
}

func signalAgent(sig syscall.Signal, node int) step {
	return act(fmt.Sprintf("%s to the agent of node %d", unix.SignalName(sig), node), func(d *drill) error {
		return d.signal(d.agents[node], sig)
	})
}

func signalEtcd(sig syscall.Signal, members ...int) step {
	return act(fmt.Sprintf("%s to %s", unix.SignalName(sig), membersNamed(members)), func(d *drill) error {
		return each(members, func(m int) error { return d.signal(d.etcds[m], sig) })
	})
}

// cut cuts a host off.
func cut(host int) step {
	return act(hostNamed(host)+" is cut off", func(d *drill) error {
		d.mark(host, CutOff)
		return d.network.Cut(host)
	})
}

// cutInbound cuts off what others send to a host.
func cutInbound(host int) step {
	return act("what is sent to "+hostNamed(host)+" is lost", func(d *drill) error {
		d.mark(host, CutOff)
		return d.network.CutInbound(host)
	})
}

// heal undoes cut and cutInbound.
func heal(host int) step {
	return act(hostNamed(host)+" is back", func(d *drill) error {
		d.mark(host, Running)
		return errors.Join(d.network.HealInbound(host), d.network.Heal(host))
	})
}

// How long a slow etcd runs each time, and how long it stands still.
const (
	slowRun   = 50 * time.Millisecond
	slowPause = 200 * time.Millisecond
)

// slowEtcd suspends a member of etcd over and over, until steadyEtcd.
func slowEtcd(member int) step {
	what := fmt.Sprintf("member %d of etcd runs for %v, stands still for %v, and so on", member, slowRun, slowPause)
	return act(what, func(d *drill) error {
		ctx, cancel := context.WithCancel(d.life)
		process := d.etcds[member].cmd.Process
		d.steady = cancel
		d.others.Go(func() {
			for ctx.Err() == nil {
				_ = process.Signal(syscall.SIGSTOP) // it may have ended
				network.Pause(ctx, slowPause)
				_ = process.Signal(syscall.SIGCONT)
				network.Pause(ctx, slowRun)
			}
		})
		return nil
	})
}

func steadyEtcd() step {
	return act("etcd is no longer slow", func(d *drill) error {
		d.steady()
		return nil
	})
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
