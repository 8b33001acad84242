package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// breaks makes a step the fault of the scenario: from then on, times are measured.
func breaks(hits func(*worker) bool, s step) step {
	return step{s.what, func(ctx context.Context, d *drill) error {
		d.inject(time.Now(), fault{what: s.what, hits: hits})
		return s.do(ctx, d)
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
	return act(what, func(d *drill) error {
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
	})
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
