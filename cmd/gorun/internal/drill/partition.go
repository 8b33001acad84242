package drill

var partition = Scenario{
	Name:  "partition",
	About: "a node is cut off: for a moment, and nothing happens; for longer, and the others go on without it until it is back",
	job:   job{etcd: 1, network: true, spare: 1, hang: true, ttl: 2 * leaseTime},
	steps: func(n int) []step {
		return []step{
			cut(n - 1),
			pause(leaseTime / 4),
			mend(n - 1),
			undisturbed(leaseTime),
			faultOfNetwork(n - 1),
			again(upTo(0, n-1)),
			oldWorkers(n - 1),
			mend(n - 1),
			together(upTo(0, n)),
		}
	},
}
