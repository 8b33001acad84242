package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	what := fmt.Sprintf("%s to a worker of node %d", unix.SignalName(sig), node)
	return step{what, func(ctx context.Context, s *testbed) error {
		list := s.world.live(node)
		k := list[len(list)-1]
		return fault(what, func(other *worker) bool { return other == k }, func(s *testbed) error {
			s.world.exitCode = -int(sig)
			return k.process.Signal(sig)
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
	return fault(fmt.Sprintf("node %d is cut off", node), onNode(node), func(s *testbed) error { return s.network.Cut(node) })
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
