package drill

import (
	"context"
	"errors"
	"syscall"
)

var etcdNoLeader = Scenario{
	Name:  "etcd-no-leader",
	About: "etcd has just lost its leader when a node comes: that waits, and gets in when there is one again",
	job:   job{etcd: 3, first: -1, spare: 1, ttl: steadyLease, lastCall: leaseTime},
	steps: func(n int) []step {
		return []step{
			fault("SIGSTOP to members 0 and 1 of etcd", nobody, func(s *testbed) error { return s.signalMembers(syscall.SIGSTOP) }),
			start(upTo(n-1, n)),
			undisturbed(2 * steadyLease),
			{"the members of etcd go on", func(_ context.Context, s *testbed) error { return s.signalMembers(syscall.SIGCONT) }},
			again(upTo(0, n)),
		}
	},
}

// signalMembers sends a signal to most members of etcd.
func (s *testbed) signalMembers(sig syscall.Signal) error {
	return errors.Join(s.signal(s.etcds[0], sig), s.signal(s.etcds[1], sig))
}
