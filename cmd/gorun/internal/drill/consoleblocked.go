package drill

import "syscall"

var consoleBlocked = Scenario{
	Name:  "console-blocked",
	About: "nobody reads what the workers of a node write, and one of them is killed: all start again, as if somebody did",
	job:   job{restarts: 1, unread: true},
	steps: func(n int) []step {
		return []step{
			consoleFull(n - 1),
			faultOfWorker(syscall.SIGKILL, n-1),
			again(upTo(0, n)),
			readConsole(n - 1),
		}
	},
}
