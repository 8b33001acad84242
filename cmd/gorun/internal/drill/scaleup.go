package drill

import "time"

var scaleUp = Scenario{
	Name:  "scale-up",
	About: "a node is added: all start again with it, free of charge",
	job:   job{first: -1, spare: 1, lastCall: time.Second / 5},
	steps: func(n int) []step {
		return []step{
			changeByStart(n - 1),
			again(upTo(0, n)),
		}
	},
}
