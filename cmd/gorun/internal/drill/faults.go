package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// breaks returns a step that injects a fault, which do causes.
func breaks(what string, hits func(*worker) bool, do func(*drill) error) step {
	return step{what, func(_ context.Context, d *drill) error {
		d.inject(time.Now(), fault{what: what, hits: hits})
		return do(d)
	}}
}

// A choice chooses workers.
type choice func(*world) []*worker

// lastOf chooses the last worker of a node.
func lastOf(node int) choice {
	return func(w *world) []*worker {
		list := w.live(node)
		return list[max(0, len(list)-1):]
	}
}

// firstAndLast chooses rank 0 and the last rank.
func firstAndLast(w *world) []*worker {
	list := w.in(w.newest())
	return []*worker{list[0], list[len(list)-1]}
}

// kills returns a step that injects a fault because of which some workers end by SIGKILL, sooner or later. It calls do for each of them.
func kills(what string, choose choice, f fault, do func(*drill, *worker) error) step {
	return step{what, func(_ context.Context, d *drill) error {
		list := choose(&d.world)
		if len(list) == 0 {
			return errors.New("no worker is left there")
		}
		f.what, f.exitCode = what, -int(syscall.SIGKILL)
		f.hits = func(k *worker) bool { return slices.Contains(list, k) }
		d.inject(time.Now(), f)
		var err error
		for _, k := range list {
			err = errors.Join(err, do(d, k))
		}
		return err
	}}
}

// faultOfWorker sends a signal to the last worker of a node.
func faultOfWorker(sig syscall.Signal, node int) step {
	return faultOfWorkers(sig, fmt.Sprintf("%s to a worker of node %d", unix.SignalName(sig), node), lastOf(node))
}

// faultOfWorkers sends a signal to some workers. If it suspends them, gorun kills them later, because they hang.
func faultOfWorkers(sig syscall.Signal, what string, choose choice) step {
	return kills(what, choose, fault{}, func(d *drill, k *worker) error {
		if sig == syscall.SIGSTOP {
			d.timeline.workers(k.Node, k.Local).set(time.Now(), k.span(Suspended))
		}
		return k.process.Signal(sig)
	})
}

// faultOfLoop has the last worker of a node loop.
func faultOfLoop(node int) step {
	return kills(fmt.Sprintf("a worker of node %d loops", node), lastOf(node), fault{}, func(_ *drill, k *worker) error {
		return k.say(loopLine)
	})
}

// faultOfMemory bounds the memory of the last worker of a node, and has it take more.
func faultOfMemory(node int) step {
	what := fmt.Sprintf("a worker of node %d takes all its memory", node)
	return kills(what, lastOf(node), fault{outOfMemory: true}, func(d *drill, k *worker) error {
		if err := d.memory.bound(k.Pid); err != nil {
			return err
		}
		return k.say(takeMemoryLine)
	})
}

// faultOfAgent sends a signal to the agent of a node.
func faultOfAgent(sig syscall.Signal, node int) step {
	return breaks(fmt.Sprintf("%s to the agent of node %d", unix.SignalName(sig), node), onNode(node), func(d *drill) error {
		return d.signal(d.agents[node], sig)
	})
}

// faultOfEtcd sends a signal to a member of etcd.
func faultOfEtcd(sig syscall.Signal, member int) step {
	return breaks(fmt.Sprintf("%s to member %d of etcd", unix.SignalName(sig), member), nobody, func(d *drill) error {
		return d.signal(d.etcds[member], sig)
	})
}

// faultOfNetwork cuts a node off.
func faultOfNetwork(node int) step {
	return breaks(fmt.Sprintf("node %d is cut off", node), onNode(node), func(d *drill) error { return d.cut(node, false) })
}

// faultOfInbound cuts off what others send to a node.
func faultOfInbound(node int) step {
	return breaks(fmt.Sprintf("what is sent to node %d is lost", node), onNode(node), func(d *drill) error { return d.cut(node, true) })
}

// changeByStart adds a node.
func changeByStart(node int) step {
	return breaks(fmt.Sprintf("node %d is added", node), onNode(node), func(d *drill) error { return d.startAgent(node) })
}

// restartEmptyEtcd starts a member of etcd again, without its data.
func restartEmptyEtcd(member int) step {
	return breaks("etcd loses its data", nobody, func(d *drill) error {
		if err := os.RemoveAll(d.dataDir(member)); err != nil {
			return err
		}
		return d.startEtcd(member)
	})
}

// faultOfMembers suspends most members of etcd.
func faultOfMembers() step {
	return breaks("SIGSTOP to members 0 and 1 of etcd", nobody, func(d *drill) error { return d.signalMembers(syscall.SIGSTOP) })
}

func continueMembers() step {
	return step{"the members of etcd go on", func(_ context.Context, d *drill) error { return d.signalMembers(syscall.SIGCONT) }}
}

func (d *drill) signalMembers(sig syscall.Signal) error {
	return errors.Join(d.signal(d.etcds[0], sig), d.signal(d.etcds[1], sig))
}

// How long a slow etcd runs each time, and how long it stands still.
const (
	slowRun   = 50 * time.Millisecond
	slowPause = 200 * time.Millisecond
)

// slowEtcd suspends a member of etcd over and over, until steadyEtcd.
func slowEtcd(member int) step {
	return step{fmt.Sprintf("member %d of etcd runs for %v, stands still for %v, and so on", member, slowRun, slowPause), func(_ context.Context, d *drill) error {
		ctx, cancel := context.WithCancel(d.life)
		process := d.etcds[member].cmd.Process
		d.steady = cancel
		d.others.Go(func() {
			for ctx.Err() == nil {
				_ = process.Signal(syscall.SIGSTOP) // it may have ended
				wait(ctx, slowPause)
				_ = process.Signal(syscall.SIGCONT)
				wait(ctx, slowRun)
			}
		})
		return nil
	}}
}

// wait waits until ctx ends, or for a while.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func steadyEtcd() step {
	return step{"etcd is no longer slow", func(_ context.Context, d *drill) error {
		d.steady()
		return nil
	}}
}
