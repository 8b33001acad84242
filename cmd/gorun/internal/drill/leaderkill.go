package drill

import (
	"math"
	"syscall"
)

var leaderKill = Scenario{
	Name:  "leader-kill",
	About: "the agent that decides on rounds is killed: another one takes over",
	job:   job{etcd: 1, first: 1, spare: math.MaxInt, ttl: leaseTime, lastCall: leaseTime}, // who is alone first leads
	steps: func(n int) []step {
		return []step{
			start(upTo(1, n)),
			together(upTo(0, n)),
			faultOfAgent(syscall.SIGKILL, 0),
			again(upTo(1, n)),
			noWorkers(0),
		}
	},
}
