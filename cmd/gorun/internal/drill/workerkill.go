package drill

import "syscall"

var workerKill = Scenario{
	Name:  "worker-kill",
	About: "a worker is killed: all start again on every node, which costs one restart",
	job:   job{restarts: 1},
	steps: func(n int) []step {
		return []step{
			faultOfWorker(syscall.SIGKILL, n-1),
			again(upTo(0, n)),
		}
	},
}
