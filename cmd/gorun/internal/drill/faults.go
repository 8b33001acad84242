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

// fault returns a step that injects a fault, with do. victim reports which workers it hits.
func fault(what string, victim func(*worker) bool, do func(*testbed) error) step {
	return step{what, func(_ context.Context, s *testbed) error {
		s.fault = what
		s.world.inject(time.Now(), victim)
		return do(s)
	}}
}

func onNode(node int) func(*worker) bool { return func(k *worker) bool { return k.Node == node } }

func nobody(*worker) bool { return false }

// faultOfWorker sends a signal to the last worker of a node.
func faultOfWorker(sig syscall.Signal, node int) step {
	return faultOfWorkers(sig, fmt.Sprintf("%s to a worker of node %d", unix.SignalName(sig), node), lastOf(node))
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

// errNoWorker says that there is no worker that a fault could hit.
var errNoWorker = errors.New("no worker is left there")

// faultOfWorkers sends a signal to some workers.
func faultOfWorkers(sig syscall.Signal, what string, choose choice) step {
	return step{what, func(ctx context.Context, s *testbed) error {
		hit := choose(s.world)
		if len(hit) == 0 {
			return errNoWorker
		}
		return fault(what, func(k *worker) bool { return slices.Contains(hit, k) }, func(s *testbed) (err error) {
			s.world.exitCode = -int(syscall.SIGKILL) // one that is suspended gets it from gorun
			for _, k := range hit {
				if sig == syscall.SIGSTOP {
					s.world.timeline.workers(k.Node, k.Local).set(time.Now(), Span{State: Suspended, Pid: k.Pid, Round: k.Round, Rank: &k.Rank})
				}
				err = errors.Join(err, k.process.Signal(sig))
			}
			return err
		}).do(ctx, s)
	}}
}

// faultOfLoop has the last worker of a node loop.
func faultOfLoop(node int) step {
	what := fmt.Sprintf("a worker of node %d loops", node)
	return step{what, func(ctx context.Context, s *testbed) error {
		list := lastOf(node)(s.world)
		if len(list) == 0 {
			return errNoWorker
		}
		k := list[0]
		return fault(what, func(other *worker) bool { return other == k }, func(s *testbed) error {
			s.world.exitCode = -int(syscall.SIGKILL)
			return k.say(loopLine)
		}).do(ctx, s)
	}}
}

// faultOfMemory bounds the memory of the last worker of a node, and has it take more.
func faultOfMemory(node int) step {
	what := fmt.Sprintf("a worker of node %d takes all its memory", node)
	return step{what, func(ctx context.Context, s *testbed) error {
		list := lastOf(node)(s.world)
		if len(list) == 0 {
			return errNoWorker
		}
		k := list[0]
		return fault(what, func(other *worker) bool { return other == k }, func(s *testbed) error {
			s.world.exitCode, s.world.outOfMemory = -int(syscall.SIGKILL), true
			if err := s.memory.bound(k.Pid); err != nil {
				return err
			}
			return k.say(takeMemoryLine)
		}).do(ctx, s)
	}}
}

// faultOfAgent sends a signal to the agent of a node.
func faultOfAgent(sig syscall.Signal, node int) step {
	return fault(fmt.Sprintf("%s to the agent of node %d", unix.SignalName(sig), node), onNode(node), func(s *testbed) error {
		return s.signal(s.agents[node], sig)
	})
}

// faultOfEtcd sends a signal to a member of etcd.
func faultOfEtcd(sig syscall.Signal, member int) step {
	return fault(fmt.Sprintf("%s to member %d of etcd", unix.SignalName(sig), member), nobody, func(s *testbed) error {
		return s.signal(s.etcds[member], sig)
	})
}

// faultOfNetwork cuts a node off.
func faultOfNetwork(node int) step {
	return fault(fmt.Sprintf("node %d is cut off", node), onNode(node), func(s *testbed) error { return s.cut(node, false) })
}

// faultOfInbound loses all that is sent to a node.
func faultOfInbound(node int) step {
	return fault(fmt.Sprintf("what is sent to node %d is lost", node), onNode(node), func(s *testbed) error { return s.cut(node, true) })
}

// changeByStart adds a node.
func changeByStart(node int) step {
	return fault(fmt.Sprintf("node %d is added", node), onNode(node), func(s *testbed) error { return s.startAgent(node) })
}

// restartEmptyEtcd starts a member of etcd again, without its data.
func restartEmptyEtcd(member int) step {
	return fault("etcd loses its data", nobody, func(s *testbed) error {
		if err := os.RemoveAll(s.dataDir(member)); err != nil {
			return err
		}
		return s.startEtcd(member)
	})
}

// faultOfMembers suspends most members of etcd.
func faultOfMembers() step {
	return fault("SIGSTOP to members 0 and 1 of etcd", nobody, func(s *testbed) error { return s.signalMembers(syscall.SIGSTOP) })
}

func continueMembers() step {
	return step{"the members of etcd go on", func(_ context.Context, s *testbed) error { return s.signalMembers(syscall.SIGCONT) }}
}

func (s *testbed) signalMembers(sig syscall.Signal) error {
	return errors.Join(s.signal(s.etcds[0], sig), s.signal(s.etcds[1], sig))
}

// How long a slow etcd runs, and stands still.
const (
	slowRun   = 50 * time.Millisecond
	slowPause = 200 * time.Millisecond
)

// slowEtcd suspends a member of etcd over and over, until steadyEtcd.
func slowEtcd(member int) step {
	return step{fmt.Sprintf("member %d of etcd runs for %v, stands still for %v, and so on", member, slowRun, slowPause), func(_ context.Context, s *testbed) error {
		ctx, cancel := context.WithCancel(s.life)
		process := s.etcds[member].cmd.Process
		s.steady = cancel
		s.others.Go(func() {
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
	return step{"etcd is no longer slow", func(_ context.Context, s *testbed) error {
		s.steady()
		return nil
	}}
}
