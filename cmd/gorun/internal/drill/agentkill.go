package drill

import "syscall"

var agentKill = Scenario{
	Name:  "agent-kill",
	About: "an agent is killed: its workers die with it, and the others go on without it",
	job:   job{etcd: 1, spare: 1, ttl: leaseTime},
	steps: func(n int) []step {
		return []step{
			faultOfAgent(syscall.SIGKILL, n-1),
			again(upTo(0, n-1)),
			noWorkers(n - 1),
		}
	},
}
