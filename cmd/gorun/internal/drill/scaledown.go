package drill

import "syscall"

var scaleDown = Scenario{
	Name:  "scale-down",
	About: "an agent is asked to end (SIGTERM): its workers may end well, and the others go on without it, free of charge",
	job:   job{spare: 1},
	steps: func(n int) []step {
		return []step{
			faultOfAgent(syscall.SIGTERM, n-1),
			again(upTo(0, n-1)),
			obeyed(syscall.SIGTERM, n-1),
		}
	},
}
