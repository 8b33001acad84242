package drill

import "syscall"

var agentStop = Scenario{
	Name:  "agent-stop",
	About: "an agent is suspended until the others have gone on without it: when it wakes it ends its old workers, and joins again",
	job:   job{etcd: 1, spare: 1, hang: true, ttl: leaseTime},
	steps: func(n int) []step {
		return []step{
			faultOfAgent(syscall.SIGSTOP, n-1),
			again(upTo(0, n-1)),
			oldWorkers(n - 1),
			signalAgent(syscall.SIGCONT, n-1),
			together(upTo(0, n)),
		}
	},
}
