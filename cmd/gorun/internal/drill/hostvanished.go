package drill

import "syscall"

var hostVanished = Scenario{
	Name:  "host-vanished",
	About: "one of three nodes that host the rendezvous is cut off: the others go on without it; started again, it hosts again, and the next one may be cut off",
	job:   job{hosts: 3, network: true, spare: 1, hang: true, ttl: 2 * leaseTime},
	steps: func(n int) []step {
		return []step{
			faultOfNetwork(0),
			again(upTo(1, n)),
			oneRound(),
			signalAgent(syscall.SIGKILL, 0),
			noWorkers(0),
			start(upTo(0, 1)),
			together(upTo(0, n)),
			hosting(0),
			cut(1),
			together(append(upTo(0, 1), upTo(2, n)...)),
			mend(1),
			together(upTo(0, n)),
		}
	},
}
